"""The WSGI application granian serves."""

import os

from django.conf import settings
from django.core.wsgi import get_wsgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "dashboard.settings")

application = get_wsgi_application()
# A person waits for this process; worker and watch have the longer patience of the settings.
settings.DATABASES["default"]["OPTIONS"]["timeout"] = settings.STEPKEEPER_WEB_PATIENCE
