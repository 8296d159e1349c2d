"""Confluent's names of the registry's endpoints, as its metrics have them, by method and route. Pure data."""

from __future__ import annotations

from typing import Final

_SUBJECT: Final = "/subjects/{subject}"
_VERSIONS: Final = f"{_SUBJECT}/versions"
_VERSION: Final = _VERSIONS + "/{version}"
_COMPATIBILITY: Final = f"/compatibility{_VERSIONS}"

ENDPOINT_NAMES: Final = {
    ("POST", _COMPATIBILITY): "compatibility.subjects.versions.verify",
    ("POST", _COMPATIBILITY + "/{version}"): "compatibility.subjects.versions.verify",
    ("PUT", "/config/{subject}"): "config.update-subject",
    ("GET", "/config/{subject}"): "config.get-subject",
    ("DELETE", "/config/{subject}"): "config.delete-subject",
    ("PUT", "/config"): "config.update-global",
    ("GET", "/config"): "config.get-global",
    ("DELETE", "/config"): "config.delete-global",
    ("GET", "/contexts"): "contexts.list",
    ("DELETE", "/contexts/{context}"): "context.delete",
    ("PUT", "/mode/{subject}"): "mode.update-subject",
    ("GET", "/mode/{subject}"): "mode.get-subject",
    ("DELETE", "/mode/{subject}"): "mode.delete-subject",
    ("PUT", "/mode"): "mode.update-global",
    ("GET", "/mode"): "mode.get-global",
    ("DELETE", "/mode"): "mode.delete-global",
    ("GET", "/schemas"): "schemas.get-schemas",
    ("GET", "/schemas/ids/{id}"): "schemas.ids.get-schema",
    ("GET", "/schemas/ids/{id}/schema"): "schemas.ids.get-schema.only",
    ("GET", "/schemas/ids/{id}/subjects"): "schemas.get-subjects",
    ("GET", "/schemas/ids/{id}/versions"): "schemas.get-versions",
    ("GET", "/schemas/guids/{guid}"): "schemas.guids.get-schema",
    ("GET", "/schemas/guids/{guid}/ids"): "schemas.guids.get-ids",
    ("GET", "/schemas/types"): "schemas.get-types",
    ("GET", "/v1/metadata/id"): "metadata.id",
    ("GET", "/v1/metadata/version"): "metadata.version",
    ("GET", "/v1/metadata/deployment"): "metadata.deployment",
    ("GET", _VERSION): "subjects.versions.get-schema",
    ("GET", f"{_VERSION}/schema"): "subjects.versions.get-schema.only",
    ("GET", f"{_VERSION}/referencedby"): "subjects.versions.list-schema-refs",
    ("GET", _VERSIONS): "subjects.versions.list",
    ("POST", _VERSIONS): "subjects.versions.register",
    ("DELETE", _VERSION): "subjects.versions.deleteSchemaVersion-schema",
    ("POST", f"{_VERSION}/tags"): "subjects.versions.modify.tags",
    ("POST", _SUBJECT): "subjects.get-schema",
    ("GET", f"{_SUBJECT}/metadata"): "subjects.get-latest-with-metadata",
    ("GET", "/subjects"): "subjects.list",
    ("DELETE", _SUBJECT): "subjects.delete-subject",
}
