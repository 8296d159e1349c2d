"""Bytes of keys and values as text or as JSON columns, and the types that columns of JSON can have.

It must not know where the bytes come from.
"""

import pyarrow as pa
import pyarrow.types as pt

from headrace.pipelines.options.known_options import OptionError
from headrace.schemas.columns.decoded import Decoded
from headrace.schemas.columns.json.columns import check_json_type, decode_json
from headrace.schemas.formats.schema_format import InvalidSchema


def decode_column(values: pa.Array, wanted: pa.DataType) -> Decoded:
    """Bytes as the wanted type: binary as they are, string as UTF-8, a struct as JSON."""
    if pt.is_binary(wanted):
        return Decoded(values)
    if pt.is_string(wanted):
        return _decode_text(values)
    return decode_json(values, wanted)


def check_type(column: pa.Field, path: str) -> None:
    """Raises OptionError where JSON cannot be read as this type."""
    try:
        check_json_type(column, path)
    except InvalidSchema as error:
        raise OptionError(f"{error}: use parse_json or from_json") from error


def _decode_text(values: pa.Array) -> Decoded:
    try:
        return Decoded(values.cast(pa.string()))
    except pa.ArrowInvalid:
        pass
    texts: list[str | None] = []
    errors: dict[int, str] = {}
    for row, value in enumerate(values.to_pylist()):
        try:
            texts.append(None if value is None else value.decode())
        except UnicodeDecodeError as error:
            texts.append(None)
            errors[row] = f"not UTF-8: {error}"
    return Decoded(pa.array(texts, pa.string()), errors)
