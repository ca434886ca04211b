"""The errors of Daytona's SDK as this package's."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import aiohttp
from daytona.common import errors

from hermes_sandbox.backends.wording import Words, by_its_words
from hermes_sandbox.errors import (
    AuthError,
    ImageError,
    QuotaError,
    SandboxGone,
    SandboxStartError,
    Unavailable,
)

LOGIN = "set DAYTONA_API_KEY, or give the option api_key"
QUOTA = "delete sandboxes (`hermes-sandbox reap daytona` finds abandoned ones), run fewer at once, or ask for more"
IMAGE = "look at the image's name, its Dockerfile or the snapshot"
REGION = "give another region as the option target or as DAYTONA_TARGET, or leave it out"
CREATE = "create a sandbox"
AGAIN = (408, 425, 502, 503, 504)
_WORDS: Words = (
    (("api key", "jwt", "credentials"), AuthError, LOGIN),
    (("quota", "limit exceeded"), QuotaError, QUOTA),
    (("image", "build", "snapshot", "dockerfile"), ImageError, IMAGE),
    (("region", "target"), SandboxStartError, REGION),
)


@asynccontextmanager
async def translated(what: str) -> AsyncGenerator[None, None]:
    """Classify whatever the SDK raises while it is to do `what`."""
    try:
        yield
    except errors.DaytonaAuthenticationError as error:
        raise AuthError(f"Daytona refuses the key ({error}); {LOGIN}") from error
    except errors.DaytonaForbiddenError as error:
        if "quota" in str(error).lower() or "limit" in str(error).lower():
            raise QuotaError(f"Daytona's quota is used up: cannot {what}: {error}; {QUOTA}") from error
        raise AuthError(f"Daytona does not allow to {what}: {error}; {LOGIN}") from error
    except errors.DaytonaRateLimitError as error:
        raise QuotaError(f"Daytona is asked too often: cannot {what}: {error}; {QUOTA}") from error
    except (errors.DaytonaNotFoundError, errors.DaytonaGoneError) as error:
        if what == CREATE:
            raise by_its_words(_WORDS, f"Daytona cannot {what}", error) from error
        raise SandboxGone(f"Daytona cannot {what}: {error}") from error
    except (
        errors.DaytonaConnectionError,
        errors.DaytonaTimeoutError,
        errors.DaytonaBadGatewayError,
        errors.DaytonaServiceUnavailableError,
        errors.DaytonaInternalServerError,
        aiohttp.ClientError,
        OSError,
    ) as error:
        raise Unavailable(f"Daytona does not answer: cannot {what}: {error}") from error
    except errors.DaytonaError as error:
        if error.status_code in AGAIN:
            raise Unavailable(f"Daytona does not answer: cannot {what}: {error}") from error
        raise by_its_words(_WORDS, f"Daytona cannot {what}", error) from error
