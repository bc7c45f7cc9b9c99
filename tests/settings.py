"""The settings of a test process: a data folder of its own, so that parallel processes share nothing."""

SECRET_KEY = "for tests only"  # noqa: S105
