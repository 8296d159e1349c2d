from headrace.settings import definitions
from tools.generate_settings_page import PAGE, page


def test_the_page_is_what_the_tables_say() -> None:
    assert PAGE.read_text() == page(), "run tools/generate_settings_page.py"


def test_no_setting_stands_in_two_tables() -> None:
    rows = [row.name for _, table in definitions.CONCERNS for row in table]
    assert len(rows) == len(set(rows)) == len(definitions.BROKER)
    assert not definitions.BROKER.keys() & definitions.UNLISTED.keys()


def test_every_setting_says_what_it_is() -> None:
    for table in (definitions.BROKER, definitions.UNLISTED, definitions.TOPIC, definitions.GROUP):
        for row in table.values():
            assert row.doc.endswith("."), row.name
            assert (
                row.check is None
                or row.default is None
                or (row.check.refusal(row.name, row.default) is None)
            ), row.name
