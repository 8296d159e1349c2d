"""Conversations with a schema registry: requests whose answers are compared with those of Confluent's registry.

`#1`, `#2`, … in a path or a body stand for the first, the second, … schema id that the conversation's answers told.
Conversations share one registry: each has subjects of its own, and leaves settings for all as it found them.
"""

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

Json = Any


class Ask(NamedTuple):
    """A request."""

    method: str
    path: str
    body: Json = None
    headers: Mapping[str, str] = {}


def get(path: str, **headers: str) -> Ask:
    return Ask("GET", path, None, headers)


def delete(path: str) -> Ask:
    return Ask("DELETE", path)


def put(path: str, body: Json) -> Ask:
    return Ask("PUT", path, body)


def post(path: str, body: Json = None, headers: Mapping[str, str] | None = None) -> Ask:
    return Ask("POST", path, body, headers or {})


def register(subject: str, schema: Json = None, query: str = "", **more: Json) -> Ask:
    body = more if schema is None else {"schema": schema, **more}
    return post(f"/subjects/{subject}/versions{query}", body)


def look_up(subject: str, schema: Json, query: str = "", **more: Json) -> Ask:
    return post(f"/subjects/{subject}{query}", {"schema": schema, **more})


def compare(place: str, schema: str, query: str = "?verbose=true", **more: Json) -> Ask:
    return post(f"/compatibility/subjects/{place}{query}", {"schema": schema, **more})


def record(*fields: tuple[Any, ...], name: str = "R") -> str:
    named = [dict(zip(("name", "type", "default"), each, strict=False)) for each in fields]
    return json.dumps({"type": "record", "name": name, "fields": named})


def reference(subject: str, version: int | None = 1, name: str = "A") -> Json:
    return {"name": name, "subject": subject, "version": version}


def tag(path: str, *tags: str, kind: str = "sr_field") -> Json:
    return {"schemaEntity": {"entityPath": path, "entityType": kind}, "tags": list(tags)}


INT = '"int"'
ONE = record(("a", "int"))
TWO = record(("a", "int"), ("b", "int", 1))  # can follow ONE
OTHER = record(("a", "string"))  # cannot
INNER = record(("x", "int"), name="A")
OUTER = record(("a", "A"), name="B")
WHOLE = record(("a", json.loads(INNER)), name="B")  # OUTER with INNER written out
RULE = {"name": "r", "kind": "CONDITION", "type": "CEL", "mode": "WRITE", "expr": "true"}
OBJECT = '{"type":"object"}'


def rules(**changes: Json) -> Json:
    return {"domainRules": [{**RULE, **changes}]}


def properties(**values: str) -> Json:
    return {"properties": values}


CONVERSATIONS: dict[str, tuple[Ask, ...]] = {
    "the program": (
        get("/"), post("/", {}), get("/nothing"), put("/subjects", {}), delete("/subjects"),
        get("/schemas/types"), get("/schemas/types/"), get("/v1/metadata/deployment"),
        Ask("PATCH", "/config"), Ask("HEAD", "/subjects?subjectPrefix=none"),
    ),
    "registering": (
        get("/subjects/reg/versions"), register("reg", ONE), register("reg", ONE), register("reg", TWO),
        register("reg", OTHER), get("/subjects/reg/versions"), get("/subjects/reg/versions/1"),
        get("/subjects/reg/versions/latest"), get("/subjects/reg/versions/-1"),
        get("/subjects/reg/versions/0"), get("/subjects/reg/versions/x"), get("/subjects/reg/versions/9"),
        get("/subjects/reg/versions/2147483648"), get("/subjects/reg/versions/-2"),
        get("/subjects/none/versions/1"), get("/subjects/none/versions/latest"),
        get("/subjects/reg/versions/1/schema"), get("/subjects/reg/versions/9/schema"),
        look_up("reg", ONE), look_up("reg", OTHER), look_up("none", OTHER), look_up("reg", "x"),
        look_up("reg", ""), post("/subjects/reg", {}), register("reg", ""), register("reg-new", ""),
        register("reg-new"), register("reg-new", ONE, schemaType="X"), register("reg-new", "{"),
        register("reg-new", TWO, unknown=1), register("reg-new", TWO, schemaType="avro"),
        register("reg-new", TWO, schemaType=None), register("reg-new", TWO, references=None),
        get("/schemas?subjectPrefix=reg"), get("/schemas?subjectPrefix=reg&latestOnly=true"),
        get("/schemas?subjectPrefix=reg&offset=1&limit=1"), get("/subjects?subjectPrefix=reg"),
        register("reg", OTHER, "?force=true"), get("/subjects/reg/versions"),
    ),
    "ids": (
        register("ids", record(("ids", "int"))), get("/schemas/ids/#1"), get("/schemas/ids/#1/schema"),
        get("/schemas/ids/#1/subjects"), get("/schemas/ids/#1/versions"), get("/schemas/ids/99999"),
        get("/schemas/ids/99999/subjects"), get("/schemas/ids/99999/versions"), get("/schemas/ids/x"),
        get("/schemas/ids/-1"), get("/schemas/ids/99999999999"), get("/schemas/ids/#1?subject=ids"),
        get("/schemas/ids/#1?subject=other"), get("/schemas/ids/#1?fetchMaxId=true"),
        register("ids-too", record(("ids", "int"))), get("/schemas/ids/#1?subject=ids-too"),
        get("/schemas/ids/#1/subjects"), get("/schemas/ids/#1/versions"),
        get("/schemas/ids/#1/subjects?offset=2"), delete("/subjects/ids"), get("/schemas/ids/#1/versions"),
        get("/schemas/ids/#1/versions?deleted=true"), get("/schemas/ids/#1/subjects?deleted=true"),
        get("/schemas/guids/none"), get("/schemas/guids/00000000-0000-0000-0000-000000000000"),
        get("/schemas/guids/none/ids"), get("/schemas/guids/e2108915-30a2-4c8b-d4b5-9ec8514b4bf4"),
        get("/schemas/guids/e2108915-30a2-4c8b-d4b5-9ec8514b4bf4/ids"),
    ),
    "deleting": (
        register("del", ONE), register("del", TWO), delete("/subjects/del/versions/1?permanent=true"),
        delete("/subjects/del/versions/1"), delete("/subjects/del/versions/1"), get("/subjects/del/versions"),
        get("/subjects/del/versions?deleted=true"), get("/subjects/del/versions?deletedOnly=true"),
        get("/subjects/del/versions?deletedAsNegative=true"), get("/subjects/del/versions/1"),
        get("/subjects/del/versions/1?deleted=true"), look_up("del", ONE), look_up("del", ONE, "?deleted=true"),
        register("del", ONE), get("/subjects/del/versions"), get("/subjects/del/versions?deleted=true"),
        delete("/subjects/del/versions/1?permanent=true"), delete("/subjects/del/versions/9"),
        delete("/subjects/none/versions/9"), delete("/subjects/none/versions/latest"),
        delete("/subjects/del/versions/latest"), delete("/subjects/del/versions/x"),
        get("/subjects/del/versions?deleted=true"), delete("/subjects/del"), delete("/subjects/del"),
        get("/subjects?subjectPrefix=del"), get("/subjects?subjectPrefix=del&deleted=true"),
        get("/subjects?subjectPrefix=del&deletedOnly=true"), get("/subjects/del/versions"),
        get("/subjects/del/versions/latest"), get("/subjects/del/versions/latest?deleted=true"),
        get("/subjects/del/versions/2"), look_up("del", ONE), delete("/subjects/del/versions/latest"),
        delete("/subjects/del/versions/latest?permanent=true"), delete("/subjects/none"),
        delete("/subjects/none?permanent=true"), delete("/subjects/del?permanent=true"),
        delete("/subjects/del?permanent=true"), get("/subjects/del/versions?deleted=true"),
        register("del-again", ONE), delete("/subjects/del-again?permanent=true"), delete("/subjects/del-again"),
        register("del-again", ONE), register("del-again", TWO), get("/subjects/del-again/versions?deleted=true"),
    ),
    "compatibility": (
        compare("comp/versions", ONE), compare("comp/versions/latest", ONE), compare("comp/versions/1", ONE),
        register("comp", ONE), compare("comp/versions/1", OTHER, ""), compare("comp/versions/1", OTHER),
        compare("comp/versions/latest", TWO), compare("comp/versions", record(("a", "int"), ("c", "int"))),
        compare("comp/versions/5", TWO), compare("comp/versions/0", TWO), compare("comp/versions/x", TWO),
        compare("comp/versions/1", "x", ""), compare("comp/versions/1", "x"), compare("comp/versions/1", ""),
        compare("comp/versions/1", "", ""), compare("comp/versions/1", OBJECT, schemaType="JSON"),
        register("comp", OBJECT, schemaType="JSON"), put("/config/comp", {"compatibility": "NONE"}),
        compare("comp/versions/1", OTHER), register("comp", OBJECT, schemaType="JSON"),
        get("/subjects/comp/versions/latest"), put("/config/comp", {"compatibility": "FULL_TRANSITIVE"}),
        compare("comp/versions", OTHER), get("/config/comp"), delete("/config/comp"), delete("/config/comp"),
        get("/config/comp"), compare("comp/versions", OUTER, references=[reference("none")]),
    ),
    "settings": (
        get("/config"), put("/config", {"compatibility": "FULL"}), get("/config"), delete("/config"), get("/config"),
        get("/config/cfg"), get("/config/cfg?defaultToGlobal=true"), put("/config/cfg", {"compatibility": "full"}),
        put("/config/cfg", {"compatibility": "bad"}), put("/config/cfg", {"compatibilityLevel": "FORWARD"}),
        put("/config/cfg", {}), put("/config/cfg", {"normalize": True}), get("/config/cfg"),
        put("/config/cfg", {
            "alias": "x", "compatibilityGroup": "g", "validateFields": True, "defaultMetadata": properties(a="b"),
        }),
        get("/config/cfg"), put("/config/cfg", {"normalize": None, "alias": None}), get("/config/cfg"),
        put("/config/cfg", {"compatibility": None}), get("/config/cfg"), delete("/config/cfg"),
        put("/config/cfg", {"unknown": 5}), put("/config/cfg", []), put("/config/cfg", b"{"), delete("/config/cfg"),
        put("/config/:.:", {"compatibility": "FULL"}), get("/config"), delete("/config/:.:"),
        put("/config/:.cctx:", {"compatibility": "FULL"}), get("/config/:.cctx:"), get("/config/:.cctx:abc"),
        get("/config/:.cctx:abc?defaultToGlobal=true"), put("/config/:.cctx:abc", {"normalize": True}),
        get("/config/:.cctx:abc?defaultToGlobal=true"), get("/config/:.cctx:abc"), delete("/config/:.cctx:"),
        delete("/config/:.cctx:abc"), put("/config/:.__GLOBAL:", {"compatibility": "NONE"}),
        get("/config/:.__GLOBAL:"), get("/config"), get("/config/cfg-none?defaultToGlobal=true"),
        delete("/config/:.__GLOBAL:"), get("/config/:.__GLOBAL:"), get("/config/__GLOBAL"),
        put("/config/__GLOBAL", {"compatibility": "NONE"}), get("/config?defaultToGlobal=true"),
        delete("/config/none"), delete("/config"), put("/config/cfg", {"compatibilityPolicy": "LENIENT"}),
        put("/config/cfg", {"compatibilityPolicy": "x"}), get("/config/cfg"), delete("/config/cfg"),
        put("/config", {"compatibility": "FULL", "normalize": True}), put("/config/cfg", {"alias": "z"}),
        get("/config/cfg?defaultToGlobal=true"), get("/config/cfg"),
        put("/config/cfg", {
            "alias": "z", "aliasForDeks": "k", "validateNewSchemas": True, "validateRules": True,
            "validateFields": False, "compatibilityPolicy": "STRICT", "compatibilityGroup": "g", "normalize": False,
            "overrideMetadata": properties(o="1"), "defaultMetadata": {"tags": {"a": ["b"]}},
        }),
        get("/config/cfg"), delete("/config"), delete("/config/cfg"), get("/config"),
    ),
    "modes": (
        get("/mode"), get("/mode/md"), get("/mode/md?defaultToGlobal=true"), put("/mode/md", {"mode": "READONLY"}),
        get("/mode/md"), register("md", ONE), delete("/subjects/md"), put("/config/md", {"compatibility": "FULL"}),
        delete("/config/md"), put("/mode/md", {"mode": "bad"}), put("/mode/md", {"mode": None}), get("/mode/md"),
        put("/mode/md", {"mode": "readonly"}), get("/mode/md"), delete("/mode/md"), delete("/mode/md"),
        get("/mode/md"), put("/mode/md", {"mode": "FORWARD"}), put("/mode/md", {"mode": "IMPORT"}),
        register("md", ONE), register("md", ONE, id=7100, version=3), register("md", ONE, id=7100, version=3),
        register("md", TWO, id=7100, version=4), register("md", TWO, id=7101), get("/subjects/md/versions"),
        register("md", ONE, id=7100, version=9), get("/subjects/md/versions"), put("/mode/md", {"mode": "IMPORT"}),
        put("/mode/md", {"mode": "READWRITE"}), put("/mode/md", {"mode": "IMPORT"}),
        put("/mode/md?force=true", {"mode": "IMPORT"}), delete("/mode/md"),
        register("md", record(("q", "int", 1)), id=7500), register("md", record(("q", "int", 2)), version=20),
        register("md", record(("q", "int", 2)), version=10), get("/subjects/md/versions/latest"),
        register("md", record(("q", "int", 3)), version=-1), get("/subjects/md/versions/latest"),
        delete("/subjects/md"), put("/mode/md", {"mode": "IMPORT"}), get("/subjects/md/versions?deleted=true"),
        delete("/mode/md"),
    ),
    "modes of contexts": (
        put("/mode/:.mctx:", {"mode": "READONLY"}), register(":.mctx:s", ONE),
        get("/mode/:.mctx:s?defaultToGlobal=true"), delete("/mode/:.mctx:"), put("/mode", {"mode": "READONLY"}),
        get("/mode"), register("md-ctx", ONE), register(":.mctx:s", ONE), delete("/mode"), get("/mode"),
        put("/mode", {"mode": "FORWARD"}), put("/mode/:.__GLOBAL:", {"mode": "READONLY"}),
        get("/mode/:.__GLOBAL:"), register("md-ctx", ONE), register(":.mctx:s", TWO), delete("/mode/:.__GLOBAL:"),
        put("/mode/:.__GLOBAL:", {"mode": "FORWARD"}), delete("/mode/:.__GLOBAL:"),
        put("/mode", {"mode": "READONLY_OVERRIDE"}), put("/mode/md-own", {"mode": "READWRITE"}),
        register("md-own", record(("own", "int"))), get("/mode/md-own?defaultToGlobal=true"), delete("/mode"),
        delete("/mode/md-own"), put("/mode/:.mctx:s", {"mode": "READONLY"}), delete("/mode/:.mctx:"),
        delete("/mode/:.mctx:?recursive=true"), get("/mode/:.mctx:s"),
    ),
    "contexts": (
        register(":.ctxa:s", ONE), register(":.ctxa:s", TWO), get("/contexts?contextPrefix=.ctx"),
        get("/subjects/:.ctxa:s/versions/1"), get("/subjects?subjectPrefix=:.ctxa:"),
        get("/schemas/ids/#1?subject=:.ctxa:"), get("/schemas/ids/#1?subject=:.ctxa:s"),
        get("/schemas/ids/#1/subjects?subject=:.ctxa:"), get("/schemas/ids/#1/versions?subject=:.ctxa:"),
        get("/contexts/.ctxa/subjects"), get("/contexts/:.ctxa:/subjects"), get("/contexts/.ctxa/subjects/s/versions"),
        get("/contexts/.ctxa/subjects/s/versions/1"), get("/contexts/.ctxa/schemas/ids/#2"),
        post("/contexts/.ctxa/subjects/t/versions", {"schema": ONE}),
        post("/contexts/.ctxa/subjects/t", {"schema": ONE}), get("/contexts/.ctxa/schemas"),
        put("/contexts/.ctxa/config", {"compatibility": "NONE"}), get("/contexts/.ctxa/config"),
        get("/contexts/.ctxa/config/s"), put("/contexts/.ctxa/mode", {"mode": "READONLY"}),
        get("/contexts/.ctxa/mode"), delete("/contexts/.ctxa/mode"), delete("/contexts/.ctxa/config"),
        post("/contexts/.ctxa/compatibility/subjects/s/versions/latest", {"schema": ONE}),
        delete("/contexts/.ctxa"), delete("/contexts/:.ctxa:"), delete("/contexts/.ctxa/subjects/s"),
        delete("/contexts/.ctxa/subjects/s?permanent=true"), delete("/contexts/.ctxa/subjects/t"),
        delete("/contexts/.ctxa"), delete("/contexts/.ctxa/subjects/t?permanent=true"), delete("/contexts/.ctxa"),
        get("/contexts?contextPrefix=.ctxa"), delete("/contexts/.never"), delete("/contexts/."),
        get("/contexts/.ctxa"), register("__GLOBAL", ONE), register("__EMPTY", ONE), register(":.:ctx-default", record(("ctx", "int"))),
        get("/subjects/ctx-default/versions/1"), get("/subjects/:.:ctx-default/versions/1"),
        register(":.ctxu:only-there", ONE), get("/subjects/only-there/versions/1"),
        get("/subjects/only-there/versions/latest"), look_up("only-there", ONE),
        get("/schemas/ids/#1?subject=only-there"), get("/subjects?subjectPrefix=:*:only"),
    ),
    "references": (
        register("refa", INNER), register("refb", OUTER, references=[reference("refa")]),
        get("/subjects/refb/versions/1"), get("/subjects/refb/versions/1?format=resolved"),
        get("/subjects/refb/versions/1?format=none"), get("/subjects/refa/versions/1/referencedby"),
        get("/subjects/refa/versions/latest/referencedby"), get("/subjects/refa/versions/9/referencedby"),
        delete("/subjects/refa/versions/1"), delete("/subjects/refa"),
        register("refc", OUTER, references=[reference("refa", 9)]),
        register("refc", OUTER, references=[reference("none")]),
        register("refc", OUTER, references=[reference("refa", -1)]), get("/subjects/refc/versions/1"),
        register("refc", OUTER), register("refd", ONE, references=[reference("refa")]),
        get("/subjects/refd/versions/1"), register("refd", ONE, references=[{"name": "A", "subject": "refa"}]),
        register("refd", ONE, references=[{"subject": "refa", "version": 1}]), look_up("refb", WHOLE),
        register("refb", WHOLE), get("/subjects/refb/versions"),
        register("refb", OUTER, references=[reference("refa", -1)]),
        look_up("refb", OUTER, "?normalize=true", references=[reference("refa"), reference("refa")]),
        register("refb", record(("a", "A"), ("q", "int", 4), name="B"), "?format=resolved&normalize=true",
                 references=[reference("refa")]),
        delete("/subjects/refb"), get("/subjects/refa/versions/1/referencedby"),
        get("/subjects/refa/versions/1/referencedby?deleted=true"), delete("/subjects/refc"),
        delete("/subjects/refd"), delete("/subjects/refa"), delete("/subjects/refa?permanent=true"),
        delete("/subjects/refa/versions/1?permanent=true"), delete("/subjects/refb?permanent=true"),
        delete("/subjects/refc?permanent=true"), delete("/subjects/refd?permanent=true"),
        delete("/subjects/refa?permanent=true"), register(":.rc:a", INNER),
        register(":.rc:b", OUTER, references=[reference("a")]), get("/subjects/:.rc:b/versions/1"),
        get("/schemas?subjectPrefix=:.rc:"),
        register("ref-self", INNER), put("/config/ref-self", {"compatibility": "NONE"}),
        register("ref-self", OUTER, references=[reference("ref-self")]), delete("/subjects/ref-self/versions/1"),
        delete("/subjects/ref-self"), delete("/subjects/ref-self?permanent=true"),
    ),
    "metadata": (
        register("me", ONE, metadata=properties(k="v1")), register("me", ONE),
        register("me", ONE, metadata=properties(k="v2")), get("/subjects/me/versions"),
        get("/subjects/me/versions/1"), get("/subjects/me/versions/2"), get("/subjects/me/metadata?key=k&value=v1"),
        get("/subjects/me/metadata?key=k&value=v9"), get("/subjects/me/metadata"),
        get("/subjects/none/metadata?key=k&value=v"), register("me", TWO), get("/subjects/me/versions/latest"),
        register("me", metadata=properties(k="v3")), get("/subjects/me/versions/latest"),
        register("me", TWO, metadata={"tags": {"a.b": ["PII"]}, "sensitive": ["s"]}),
        get("/subjects/me/versions/latest"), look_up("me", ONE, metadata=properties(k="v1")),
        register("me", ONE, metadata={"bad": 1}), register("me", ONE, metadata={}),
        get("/subjects/me/versions/latest"), register("me", ONE, metadata=properties(b="1", a="2")),
        get("/subjects/me/versions/latest"),
        put("/config/me-def", {"defaultMetadata": properties(d="1", k="def"), "overrideMetadata": properties(o="2")}),
        register("me-def", ONE, metadata=properties(k="mine", o="mine")), get("/subjects/me-def/versions/latest"),
        register("me-def", TWO), get("/subjects/me-def/versions/latest"),
        put("/config/me-def", {"defaultMetadata": None}), get("/config/me-def"),
        put("/config/me-group", {"compatibilityGroup": "major"}),
        register("me-group", ONE, metadata=properties(major="1")),
        register("me-group", OTHER, metadata=properties(major="2")),
        register("me-group", OTHER, metadata=properties(major="1")),
        compare("me-group/versions", OTHER, metadata=properties(major="1")),
        compare("me-group/versions/latest", TWO, metadata=properties(major="1")),
        put("/config/me-res", {"validateFields": True}),
        register("me-res", ONE, metadata=properties(**{"confluent:reserved": "a, z"})),
        register("me-res", ONE, metadata=properties(**{"confluent:reserved": "z"})),
        register("me-res", TWO, metadata=properties(k="1")),
        register("me-res", OTHER, metadata=properties(**{"confluent:reserved": "z"})),
    ),
    "versions in metadata": (
        register("cv", ONE, version=1), register("cv", ONE), look_up("cv", ONE), register("cv", ONE, version=-1),
        register("cv", TWO), get("/subjects/cv/versions"), register("cv", TWO, version=2),
        get("/subjects/cv/versions"), register("cv", TWO, metadata=properties(**{"confluent:version": "2"})),
        register("cv", ONE, version=3), get("/subjects/cv/versions"),
    ),
    "rules": (
        register("ru", ONE, ruleSet=rules()), get("/subjects/ru/versions/1"),
        register("ru", ONE, ruleSet=rules(mode="UPGRADE")),
        register("ru", ONE, ruleSet={"migrationRules": [{**RULE, "mode": "UPGRADE"}]}),
        get("/subjects/ru/versions/latest"), register("ru", ONE, ruleSet={"migrationRules": [RULE]}),
        register("ru", ONE, ruleSet=rules(kind="X")), register("ru", ONE, ruleSet=rules(name="")),
        register("ru", ONE, ruleSet={"domainRules": [RULE, RULE]}), register("ru", TWO),
        get("/subjects/ru/versions/latest"), get("/schemas?subjectPrefix=ru&ruleType=CEL"),
        get("/schemas?subjectPrefix=ru&ruleType=X"),
        put("/config/ru", {"defaultRuleSet": rules(name="d"), "overrideRuleSet": rules(name="o")}),
        get("/config/ru"), register("ru", ONE, ruleSet=rules()), get("/subjects/ru/versions/latest"),
        put("/config/ru", {"defaultRuleSet": rules(mode="UPGRADE")}),
        register("ru", ONE, ruleSet=rules(onSuccess="NONE", onFailure="DLQ", tags=["a"], params={"x": "y"}, doc="d",
                                          disabled=True)),
        get("/subjects/ru/versions/latest"), register("ru2", ONE, ruleSet=rules(mode="NONE")),
        register("ru2", ONE, ruleSet={"domainRules": [{"name": "a"}]}),
        register("ru2", ONE, ruleSet=rules(name="a b")), register("ru2", ONE, ruleSet=rules(onSuccess="A,B")),
        register("ru2", ONE, ruleSet=rules(unknown=1)), get("/subjects/ru2/versions/latest"),
        register("ru2", ONE, ruleSet={"encodingRules": [RULE], "enableAt": "CLIENT"}),
        get("/subjects/ru2/versions/latest"), register("ru2", ONE, ruleSet=rules(name="x" * 300)),
        register("ru2", ONE, ruleSet=rules(tags=["b", "a", "a"], params={"z": "1", "b": "2"})),
    ),
    "tags in Avro": (
        register("tg", ONE), post("/subjects/tg/versions/1/tags", {"tagsToAdd": [tag("R.a", "PII")]}),
        get("/subjects/tg/versions/latest"),
        post("/subjects/tg/versions/latest/tags",
             {"newVersion": 3, "tagsToAdd": [tag("R", "T1", "T2", kind="sr_record")]}),
        get("/subjects/tg/versions/latest"), get("/subjects/tg/versions/latest?findTags=*"),
        get("/subjects/tg/versions/latest?findTags=T1"), get("/schemas/ids/#3?findTags=*"),
        post("/subjects/tg/versions/latest/tags", {"tagsToRemove": [tag("R", "T1", kind="sr_record")]}),
        get("/subjects/tg/versions/latest"), post("/subjects/tg/versions/9/tags", {}),
        post("/subjects/none/versions/9/tags", {}), post("/subjects/tg/versions/latest/tags", {"newVersion": 30}),
        post("/subjects/tg/versions/latest/tags", {"rulesToMerge": rules()}), get("/subjects/tg/versions/latest"),
        post("/subjects/tg/versions/latest/tags", {"rulesToRemove": ["r"]}), get("/subjects/tg/versions/latest"),
        register("tg", TWO, schemaTagsToAdd=[tag("R.b", "X")]), get("/subjects/tg/versions/latest"),
        register("tg", TWO, propagateSchemaTags=True), get("/subjects/tg/versions/latest"),
        post("/subjects/tg/versions/latest/tags", {"ruleSet": rules(), "rulesToMerge": rules()}),
    ),
    "aliases": (
        register("al", ONE), put("/config/al-alias", {"alias": "al"}), get("/subjects/al-alias/versions"),
        get("/subjects/al-alias/versions/1"), register("al-alias", TWO), get("/subjects/al/versions"),
        look_up("al-alias", ONE), get("/schemas?subjectPrefix=al&aliases=true"),
        get("/schemas/ids/#1?subject=al-alias"), compare("al-alias/versions/latest", OTHER, ""),
        get("/config/al-alias"), delete("/subjects/al-alias/versions/1"), delete("/config/al-alias"),
    ),
    "bad requests": (
        *(post("/subjects/bad/versions", body) for body in (
            b"{", b"[]", b'"x"', {"schema": {"type": "int"}}, {"schema": INT, "id": "x"},
            {"schema": INT, "references": {}}, {"schema": INT, "references": [7]}, {"schema": INT, "metadata": []},
            b"\xff\xfe",
        )),
        *(post("/subjects/bad/versions", {"schema": INT}, {"Content-Type": kind}) for kind in (
            "text/plain", "application/xml", "application/octet-stream", "application/json",
            "application/vnd.schemaregistry+json",
        )),
        *(get("/subjects?subjectPrefix=bad", Accept=accept) for accept in (
            "text/html", "application/json", "application/vnd.schemaregistry+json", "*/*",
            "text/html, application/json;q=0.5",
            "application/vnd.schemaregistry.v1+json; q=0.9, application/json; q=0.5",
        )),
        get("/subjects?limit=x"), get("/subjects?deleted=maybe&subjectPrefix=bad"),
        get("/subjects?subjectPrefix=bad&limit=0"), get("/subjects/a%2Fb/versions"), register("bad%2Fslash", INT),
        get("/subjects/bad%2Fslash/versions"), register("bad%20space", INT), register("bad%C3%BC", INT),
        get("/subjects?subjectPrefix=bad"), get("/mode/a/b"), get("/config/a/b"), get("/subjects/none/versions/"),
        get("/subjects/bad/versions/1/"), post("/mode", {"mode": "x"}), put("/mode", b"{"),
    ),
}  # fmt: skip

# Where Headrace answers otherwise: the status of its answer, and why.
DIFFERENT: dict[str, dict[int, tuple[int, str]]] = {}
