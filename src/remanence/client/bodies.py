"""Bodies of requests, checked before they are sent."""

from typing import TypeVar

from pydantic import BaseModel, ValidationError

from remanence.errors import InvalidArgument, InvalidMessage

B = TypeVar("B", bound=BaseModel)


def make_body(shape: type[B], **fields: object) -> B:
    """Return the body of a request.

    Raises:
        InvalidMessage: a message is not an object of a provider.
        InvalidArgument: another field has an impossible value.
    """
    try:
        return shape.model_validate(fields)
    except ValidationError as error:
        found = error.errors()[0]
        name, value = str(found["loc"][0]), found["input"]
        if name in ("message", "messages"):
            remedy = "pass an object such as {'role': 'user', 'content': 'Hello.'}"
            raise InvalidMessage(f"message {value!r:.80} is impossible: {remedy}") from None
        raise InvalidArgument(f"{name}={value!r:.80} is impossible: {found['msg']}") from None
