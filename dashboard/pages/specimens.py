"""stub"""


def build() -> None: ...
