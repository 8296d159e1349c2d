"""Judging of schemas: validity, canonical text, compatibility; in processes of their own, because a schema can be costly."""
