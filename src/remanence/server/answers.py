"""Schemas of answers in the OpenAPI document."""

from remanence.wire.json_value import JsonObject


def require_fields_of_answers(document: JsonObject) -> None:
    """Require every field of an answer, as answers have them all, those with a default too.

    Client generators make the other fields optional. Bodies of requests forbid unknown fields.
    """
    for schema in document["components"]["schemas"].values():
        if "properties" in schema and schema.get("additionalProperties") is not False:
            schema["required"] = [*schema["properties"]]
