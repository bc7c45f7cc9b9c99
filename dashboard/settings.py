"""Django's settings, read once from the environment. The table of variables is dashboard/environment.py."""

from __future__ import annotations

from typing import Any

from django.core.exceptions import ImproperlyConfigured

from dashboard import environment, secret_key

BASE_DIR = environment.CHECKOUT

# --- Stepkeeper's own ---
environment.refuse_unknown()
STEPKEEPER_DATA = secret_key.make_data_folder(environment.DATA.read())
STEPKEEPER_DEMO = environment.DEMO.read()
STEPKEEPER_DEMO_FOLDER = STEPKEEPER_DATA / "demo"
# The demo shows its own journals beside the user's, without being asked.
STEPKEEPER_JOURNALS: tuple[str, ...] = environment.JOURNALS.read() + (
    (str(STEPKEEPER_DEMO_FOLDER / "journals" / "*.db"),) if STEPKEEPER_DEMO else ()
)
STEPKEEPER_PORT = environment.PORT.read()
STEPKEEPER_SIGN_IN_TTL = environment.SIGN_IN_TTL.read()
STEPKEEPER_DECISION_TTL = environment.DECISION_TTL.read()
STEPKEEPER_INTENT_ALERT = environment.INTENT_ALERT.read()
STEPKEEPER_DISK_WARN = environment.DISK_WARN.read()
STEPKEEPER_DISK_CRITICAL = environment.DISK_CRITICAL.read()
STEPKEEPER_WEB_PATIENCE = 2.0  # seconds the web process waits for a lock on our own database; then it answers 503
if STEPKEEPER_DISK_WARN >= STEPKEEPER_DISK_CRITICAL:
    raise ImproperlyConfigured(
        f"STEPKEEPER_DISK_WARN is {STEPKEEPER_DISK_WARN} and STEPKEEPER_DISK_CRITICAL is {STEPKEEPER_DISK_CRITICAL}: "
        "accepted is a warning below the critical mark."
    )

# --- Django ---
DEBUG = environment.DEBUG.read()
SECRET_KEY = secret_key.load_secret_key(STEPKEEPER_DATA)
ALLOWED_HOSTS = list(environment.HOSTS.read())
ROOT_URLCONF = "dashboard.urls"
# The output of a step marked as committed: a million characters, of twelve bytes each at most as a browser sends them.
DATA_UPLOAD_MAX_MEMORY_SIZE = 16 * 2**20

INSTALLED_APPS = [
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django_htmx",
    "django_q",
    "agents",
    "agents.demo",
    "dashboard",
]

MIDDLEWARE = [
    "dashboard.middleware.PageHeaders",
    "dashboard.middleware.ExactHost",  # before WhiteNoise: static files and /healthz refuse a foreign Host too
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.auth.middleware.LoginRequiredMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
]

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
        },
    },
]

DATABASES: dict[str, dict[str, Any]] = {
    "default": {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": STEPKEEPER_DATA / "dashboard.db",
        "OPTIONS": {
            # A deferred transaction that turns into a write fails at once, regardless of the timeout. This one waits.
            "transaction_mode": "IMMEDIATE",
            "timeout": 10,
            # Jobs and decisions stand here: FULL, so that a power cut loses none that a page has confirmed.
            "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA journal_size_limit=8388608;",
        },
    },
}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
# A file cache: django-q2's processes and the web process see the same entries.
CACHES = {
    "default": {
        "BACKEND": "django.core.cache.backends.filebased.FileBasedCache",
        "LOCATION": STEPKEEPER_DATA / "cache",
    },
}

Q_CLUSTER: dict[str, Any] = {
    "name": "stepkeeper",
    "orm": "default",
    "workers": 2,
    # The lock of a job starts when it is fetched, so only as many are fetched as can start at once.
    "queue_limit": 2,
    "bulk": 1,
    # Whole numbers: a fraction fails every job. retry is far above timeout so that no job runs twice because it waited.
    "timeout": 60,
    "retry": 300,
    "max_attempts": 1,
    "ack_failures": True,
    "save_limit": -1,  # a job's outcome is its row in our table, never django-q2's
    "poll": 0.5,
    "scheduler": False,
    "catch_up": False,
    "label": "Jobs",
}

# --- people ---
LOGIN_URL = "sign_in"
LOGIN_REDIRECT_URL = "/"
LOGOUT_REDIRECT_URL = "sign_in"
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator", "OPTIONS": {"min_length": 10}},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
]
# Browsers share cookies between the ports of one host: the port in the name keeps two dashboards apart.
SESSION_COOKIE_NAME = f"stepkeeper_session_{STEPKEEPER_PORT}"
SESSION_COOKIE_SAMESITE = "Strict"
SESSION_COOKIE_HTTPONLY = True
CSRF_COOKIE_NAME = f"stepkeeper_csrf_{STEPKEEPER_PORT}"
CSRF_COOKIE_SAMESITE = "Strict"
CSRF_COOKIE_HTTPONLY = True
SECURE_REFERRER_POLICY = "same-origin"
# Only this machine reaches the dashboard: who sets this header is the HTTPS proxy before it. docs/reference/settings.md
# says what the proxy has to send. Cookies are marked Secure by the middleware, where a request came by HTTPS.
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
CSRF_TRUSTED_ORIGINS = [f"https://{host}" for host in ALLOWED_HOSTS]
X_FRAME_OPTIONS = "DENY"

# --- static files ---
STATIC_URL = "/static/"
STATIC_ROOT = STEPKEEPER_DATA / "static"
STATICFILES_DIRS = [BASE_DIR / "static"]
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {
        "BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"
        if DEBUG
        else "whitenoise.storage.CompressedManifestStaticFilesStorage"
    },
}
WHITENOISE_ALLOW_ALL_ORIGINS = False
WHITENOISE_AUTOREFRESH = WHITENOISE_USE_FINDERS = DEBUG

# --- language, time, log ---
LANGUAGE_CODE = "en"
USE_I18N = False
USE_TZ = True
TIME_ZONE = environment.TIME_ZONE.read()

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {
        "line": {
            "()": "dashboard.ui.safe_text.LogLine",
            "format": "%(asctime)s %(name)s %(levelname)s %(message)s",
            "datefmt": "%H:%M:%S",
        },
    },
    # /healthz answers 503 while the parts start, any page while the database is busy: answers, not events for the log.
    "filters": {
        "not_503": {
            "()": "django.utils.log.CallbackFilter",
            "callback": lambda record: getattr(record, "status_code", 0) != 503,
        }
    },
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "line", "filters": ["not_503"]}},
    "root": {"handlers": ["stderr"], "level": "WARNING"},
    "loggers": {
        "agents": {"level": "INFO"},
        "dashboard": {"level": "INFO"},
        # Django's own handlers would print beside ours what ours leaves out.
        "django": {"handlers": [], "level": "INFO"},
        "django.server": {"handlers": [], "level": "INFO"},
        "django.request": {"level": "ERROR"},  # refusals are answers, not events for the operator's log
        "django-q": {"level": "WARNING"},
    },
}
