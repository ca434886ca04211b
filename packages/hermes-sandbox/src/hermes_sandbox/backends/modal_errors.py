"""The errors of Modal's SDK as this package's."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from modal import exception as errors

from hermes_sandbox.backends.wording import Words, by_its_words
from hermes_sandbox.errors import (
    AuthError,
    ImageError,
    QuotaError,
    SandboxGone,
    SandboxStartError,
    Unavailable,
)

LOGIN = "run `modal token new`, or set MODAL_TOKEN_ID and MODAL_TOKEN_SECRET"
QUOTA = "run fewer at once, or ask for a higher limit"
IMAGE = "look at the image's name, at its Dockerfile, or at registry_secret for a private registry"
REGION = "give another region as the option region, or leave it out"
SECRET = "make the secret at Modal, or leave it out of the option secrets"
CREATE = "create a sandbox"
_NO_TOKEN = (("token",), AuthError, LOGIN)
_WORDS: Words = (
    (("secret",), SandboxStartError, SECRET),
    (("image",), ImageError, IMAGE),
    (("region",), SandboxStartError, REGION),
)
"""Modal has one class for whatever it does not find or accept."""


@asynccontextmanager
async def translated(what: str) -> AsyncGenerator[None, None]:
    """Classify whatever the SDK raises while it is to do `what`."""
    try:
        yield
    except (errors.AuthError, errors.PermissionDeniedError) as error:
        raise AuthError(f"Modal refuses the token ({error}); {LOGIN}") from error
    except errors.ResourceExhaustedError as error:
        raise QuotaError(f"Modal is full: cannot {what}: {error}; {QUOTA}") from error
    except (
        errors.NotFoundError,
        errors.SandboxTerminatedError,
        errors.SandboxTimeoutError,
        errors.ConflictError,
    ) as error:
        if what == CREATE:
            raise by_its_words(_WORDS, f"Modal cannot {what}", error) from error
        raise SandboxGone(f"Modal cannot {what}: {error}") from error
    except errors.RemoteError as error:
        raise ImageError(f"Modal cannot build the image: {error}; {IMAGE}") from error
    except (
        errors.ConnectionError,
        errors.ServiceError,
        errors.InternalError,
        errors.TimeoutError,
        OSError,
    ) as error:
        raise Unavailable(f"Modal does not answer: cannot {what}: {error}") from error
    except errors.Error as error:
        raise by_its_words((_NO_TOKEN, *_WORDS), f"Modal cannot {what}", error) from error
