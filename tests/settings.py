"""The settings of a test process: a data folder of its own, so that parallel processes share nothing."""

import atexit
import os
import shutil
import tempfile

_folder = tempfile.mkdtemp(prefix="stepkeeper-tests-")
_owner = os.getpid()


def _remove() -> None:
    if os.getpid() == _owner:  # not in a forked child
        shutil.rmtree(_folder, ignore_errors=True)


atexit.register(_remove)

for _name in [name for name in os.environ if name.startswith("STEPKEEPER_")]:
    del os.environ[_name]
os.environ.pop("PORT", None)
os.environ["STEPKEEPER_DATA"] = _folder
os.environ["STEPKEEPER_HOSTS"] = "127.0.0.1,localhost,testserver"

from dashboard.settings import *  # noqa: E402, F403
from dashboard.settings import STATIC_ROOT, STORAGES  # noqa: E402

# The manifest needs a collectstatic; one test makes it, the others read the checkout's files.
STORAGES = STORAGES | {"staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"}}
STATIC_ROOT.mkdir()
WHITENOISE_AUTOREFRESH = WHITENOISE_USE_FINDERS = True
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
