"""A report on one subject: its claims, what happened, what is not proven; as text, JSON or one HTML page."""

from html import escape
from typing import Any

from executor.audit import challenges
from executor.audit.dossier import Dossier, SubjectFindings, claims_of
from executor.audit.findings import Claim, Failure
from executor.audit.text import FAILS, HOLDS, show_claim, show_failure
from executor.audit.verify import Verification
from protocol.ledger.challenges import ChallengeEvidence
from protocol.values import dataclass

SHOWN = 20
"""How many failures elsewhere are shown where the subject itself has none."""


@dataclass(frozen=True)
class Report:
    """What an audit says about a subject."""

    dossier: Dossier
    claims: list[Claim]
    failures: list[Failure]
    verification: Verification
    anchored: bool
    """Whether the first block was known from elsewhere than from the peer that was asked."""

    @classmethod
    def of(
        cls, dossier: Dossier, findings: SubjectFindings, verification: Verification, *, anchored: bool
    ) -> "Report":
        """Put together what was found about a subject."""
        positions = {event.position for event in dossier.events}
        claims, failures = claims_of(findings, positions)
        return cls(dossier, claims, failures or verification.failures[:SHOWN], verification, anchored)

    @property
    def verified(self) -> bool:
        """Whether the subject is there, the whole channel holds, and no replay gave something else."""
        return bool(self.dossier.events) and self.verification.holds and challenges.is_sound(self.challenges)

    @property
    def challenges(self) -> list[ChallengeEvidence]:
        """The challenges of the subject's tasks."""
        return challenges.about(self.verification.challenges, self.dossier.subject.rests_on)

    @property
    def title(self) -> str:
        """What the report is about."""
        return f"{self.dossier.subject.kind} {self.dossier.subject.name}"

    @property
    def summary(self) -> list[tuple[bool, str]]:
        """The claims in one line each, those about Fabric itself last."""
        chain = self.verification
        found = [(claim.holds, show_claim(claim)[2:]) for claim in self.claims]
        members = len(chain.chain.configuration.application)
        if self.dossier.events:
            needed = chain.chain.rules.fewest or 0
            least = min(len(event.endorsed_by) for event in self.dossier.events)
            line = f"endorsed by at least {least} of {members} organisations, where at least {needed} had to"
            found.append((least >= needed, line))
        whole = f"the whole channel: {chain.chain.height} blocks, {chain.chain.signatures} signatures"
        wrong = f"; {len(chain.failures)} things are wrong in it" if chain.failures else ""
        found.append((chain.holds, whole + wrong))
        if self.challenges:
            line = "no auditor who ran a challenged task again found something else"
            found.append(
                (challenges.is_sound(self.challenges), f"{line} ({len(self.challenges)} challenges)")
            )
        return found

    @property
    def not_proven(self) -> list[str]:
        """What nobody can know from this."""
        anchor = (
            "That this is the channel you mean: the peer that was asked named its first block. Give --genesis"
            " with the hash from another source."
        )
        return [*([] if self.anchored else [anchor]), *self.verification.not_proven]

    def to_dict(self) -> dict[str, Any]:
        """Return the object that `--json` prints."""
        return {
            "subject": self.dossier.subject.kind,
            "id": self.dossier.subject.name,
            "verified": self.verified,
            "genesis": f"sha256:{self.verification.chain.genesis.hex()}",
            "claims": [claim.to_dict() for claim in self.claims],
            "channel": [claim.to_dict() for claim in self.verification.claims],
            "facts": self.dossier.facts,
            "events": [event.to_dict() for event in self.dossier.events],
            "failures": [failure.to_dict() for failure in self.failures],
            "challenges": [challenges.to_dict(found) for found in self.challenges],
            "rules": self.verification.chain.rules.to_dict(),
            "not_proven": self.not_proven,
        }

    def text(self) -> str:
        """Return the report for a terminal."""
        parts = [self.title, ""]
        parts += [f"{HOLDS if holds else FAILS} {line}" for holds, line in self.summary]
        if self.failures:
            parts += ["", "Not as it should be:", *map(show_failure, self.failures)]
        if self.dossier.facts:
            parts += ["", *(f"{name}: {value}" for name, value in self.dossier.facts.items())]
        parts += challenges.lines(self.challenges)
        parts += ["", "What happened, in the order of the blocks:"]
        parts += [f"{event.position}: {event.sentence} ({event.by})" for event in self.dossier.events]
        parts += ["", "Whose signatures count, as it changed:"]
        parts += map(str, self.verification.chain.rules.changes)
        parts += ["", "What this does not prove:", *(f"- {sentence}" for sentence in self.not_proven)]
        return "\n".join([*parts, "", "verified" if self.verified else "NOT VERIFIED"])

    def html(self) -> str:
        """Return the report as one page that needs nothing else."""
        claims = "".join(
            f'<li class="{"ok" if holds else "bad"}">{HOLDS if holds else FAILS} {escape(line)}</li>'
            for holds, line in self.summary
        )
        wrong = "".join(f'<li class="bad">{escape(show_failure(failure))}</li>' for failure in self.failures)
        facts = "".join(
            f"<tr><th>{escape(name)}</th><td><code>{escape(value)}</code></td></tr>"
            for name, value in self.dossier.facts.items()
        )
        events = "".join(
            f"<tr><td>{event.position.block}</td><td>{event.position.tx}</td><td>{escape(event.sentence)}</td>"
            f"<td>{escape(event.by)}</td><td>{escape(', '.join(event.endorsed_by))}</td></tr>"
            for event in self.dossier.events
        )
        doubted = "".join(f"<li>{escape(line)}</li>" for line in challenges.lines(self.challenges)[2:])
        rules = "".join(f"<li>{escape(str(found))}</li>" for found in self.verification.chain.rules.changes)
        limits = "".join(f"<li>{escape(sentence)}</li>" for sentence in self.not_proven)
        verdict = "verified" if self.verified else "NOT VERIFIED"
        return (
            f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{escape(self.title)}</title>'
            f"<style>{_STYLE}</style></head><body><h1>{escape(self.title)}</h1><p><strong>{verdict}</strong></p>"
            f"<ul>{claims}</ul>{f'<h2>Not as it should be</h2><ul>{wrong}</ul>' if wrong else ''}"
            f"{f'<h2>Challenges</h2><ul>{doubted}</ul>' if doubted else ''}"
            f"<h2>Facts</h2><table>{facts}</table><h2>What happened, in the order of the blocks</h2><table>"
            "<tr><th>block</th><th>transaction</th><th>what</th><th>by</th><th>endorsed by</th></tr>"
            f"{events}</table><h2>Whose signatures count, as it changed</h2><ul>{rules}</ul>"
            f"<h2>What this does not prove</h2><ul>{limits}</ul></body></html>\n"
        )


_STYLE = (
    "body{font-family:sans-serif;max-width:70em;margin:2em auto;padding:0 1em}table{border-collapse:collapse}"
    "td,th{border:1px solid #ccc;padding:.2em .5em;text-align:left}.bad{color:#b00020}.ok{color:#145a14}"
    "ul{list-style:none;padding-left:0}"
)
