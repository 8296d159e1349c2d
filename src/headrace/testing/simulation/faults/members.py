"""Members of consumer groups that die without a word, and others that come in their place."""

from headrace.testing.simulation.faults.act import Act


def replace_member(act: Act) -> None:
    """A member's process is killed; soon another member comes."""
    members = act.around.members
    if not members:
        return
    member = act.chance.choice(list(members))
    act.tell(f"{member.name} is killed")
    members.pop(member).end()
    act.undo_later(act.around.start_member)
