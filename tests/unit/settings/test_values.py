import pytest

from headrace.errors import SettingError
from headrace.settings import definitions
from headrace.settings.definitions.setting import Setting
from headrace.settings.definitions.value_type import Password, Value, ValueType, shown
from headrace.settings.values import nearest_name, parse, text_of, unknown_name


def a(type_: ValueType) -> Setting:
    return Setting("a.setting", type_, None, "")


@pytest.mark.parametrize(
    ("type_", "text", "value"),
    [
        (ValueType.BOOLEAN, "TRUE", True),
        (ValueType.BOOLEAN, " false ", False),
        (ValueType.INT, "+007", 7),
        (ValueType.INT, "-2147483648", -2147483648),
        (ValueType.SHORT, "32767", 32767),
        (ValueType.LONG, "9223372036854775807", 2**63 - 1),
        (ValueType.DOUBLE, "1e3", 1000.0),
        (ValueType.DOUBLE, "0.5d", 0.5),
        (ValueType.LIST, "", ()),
        (ValueType.LIST, " a , b,a ", ("a", "b")),
        (ValueType.STRING, "  padded ", "padded"),
        (ValueType.CLASS, "org.example.Thing", "org.example.Thing"),
        (ValueType.PASSWORD, "secret", "secret"),
    ],
)
def test_text_is_read_as_kafka_reads_it(type_: ValueType, text: str, value: Value) -> None:
    assert parse(a(type_), text) == value


@pytest.mark.parametrize(
    ("type_", "text", "reason"),
    [
        (ValueType.BOOLEAN, "yes", "Expected value to be either true or false"),
        (ValueType.INT, "2147483648", "Not a number of type INT"),
        (ValueType.INT, "1_000", "Not a number of type INT"),
        (ValueType.INT, "٣", "Not a number of type INT"),
        (ValueType.INT, "", "Not a number of type INT"),
        (ValueType.INT, "1.0", "Not a number of type INT"),
        (ValueType.SHORT, "32768", "Not a number of type SHORT"),
        (ValueType.DOUBLE, "1_0.5", "Not a number of type DOUBLE"),
        (ValueType.DOUBLE, "inf", "Not a number of type DOUBLE"),
        (ValueType.DOUBLE, "d", "Not a number of type DOUBLE"),
    ],
)
def test_malformed_text_is_refused_by_name(type_: ValueType, text: str, reason: str) -> None:
    with pytest.raises(SettingError) as raised:
        parse(a(type_), text)
    assert str(raised.value) == f"Invalid value {text} for configuration a.setting: {reason}"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (True, "true"),
        (0.5, "0.5"),
        (1.0, "1.0"),
        (0.001, "0.001"),
        (0.0001, "1.0E-4"),
        (12345678.0, "1.2345678E7"),
        (1.7976931348623157e308, "1.7976931348623157E308"),
        (float("nan"), "NaN"),
        (float("-inf"), "-Infinity"),
        (("a", "b"), "a,b"),
        (Password("secret"), "[hidden]"),
        (None, "null"),
    ],
)
def test_values_are_shown_as_java_shows_them(value: Value, text: str) -> None:
    assert shown(value) == text


def test_a_secret_is_never_shown() -> None:
    secret = parse(definitions.BROKER["ssl.keystore.password"], "secret")
    assert "secret" not in repr(secret)
    assert text_of(definitions.BROKER["ssl.keystore.password"], secret) is None


def test_the_nearest_name_is_found() -> None:
    assert unknown_name("log.retention.hour", definitions.BROKER) == (
        "log.retention.hour: unknown setting; nearest known name: log.retention.hours"
    )
    assert nearest_name("NUM_PARTITIONS", definitions.BROKER) == "num.partitions"
    assert unknown_name("zzz", definitions.BROKER) == "zzz: unknown setting"
