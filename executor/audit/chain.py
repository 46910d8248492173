"""The walk over a channel's blocks: everything that Fabric itself promises, checked by nobody's word.

For each block, in order:

1. it follows the one before: its number, the hash of that one's header, and the hash of its own data;
2. the orderers signed it, by the policy that the configuration names for blocks;
3. a configuration block is what its update leads to, signed by those who may change what it changes;
4. each transaction has a valid creator, and endorsements that satisfy every policy that it touches;
5. the verdicts are those noted in the block, and the peer's commit hash is the one computed here.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from executor.audit.checkpoint import Marks, Resumed
from executor.audit.fabric.block import FIRST, FLAGS, Block
from executor.audit.fabric.certificates import UntrustedError
from executor.audit.fabric.configuration import Configuration, RootSet, UnauthorisedError
from executor.audit.fabric.form import Form, InvalidError, Signed, Verdict
from executor.audit.fabric.identity import Identity
from executor.audit.fabric.messages import MalformedError, configtx, parse
from executor.audit.fabric.rwset import NamespaceSet
from executor.audit.fabric.transaction import Transaction, check_config_creator, tx_id_of
from executor.audit.fabric.validation import Judged, Validator
from executor.audit.fabric.view import View
from executor.audit.findings import Findings
from executor.audit.rules import Rules
from executor.audit.verdicts import report_verdict

SENTENCES = {
    "anchor": "the channel's first block is the one known from outside",
    "hash chain": "each block follows the one before, and its data have the hash in its header",
    "orderers": "each block is signed as the channel's policy for blocks asks",
    "configuration": "each configuration is signed by those who may make it",
    "creators": "each valid transaction is signed by a member with a certificate that was not revoked",
    "endorsements": "each valid transaction is endorsed as the policies of all it changes ask",
    "validity flags": "each transaction's noted verdict is the one computed here",
    "commit hashes": "each commit hash of the exporting peer is the one computed here",
    "checkpoint": "the blocks up to the checkpoint are those that were verified when it was written",
}


@dataclass(frozen=True)
class Anchor:
    """How a channel is known from outside: by its first block, or by its organisations' roots."""

    genesis: bytes | None = None
    roots: RootSet | None = None


class Position(NamedTuple):
    """Where a transaction stands; the order of events is the order of these."""

    block: int
    tx: int

    def __str__(self) -> str:
        return f"block {self.block} transaction {self.tx}"


class Committed(NamedTuple):
    """A valid transaction and where it stands."""

    position: Position
    transaction: Transaction


@dataclass
class Chain:
    """What was seen of a channel so far."""

    anchor: Anchor
    findings: Findings
    validator: Validator = field(default_factory=Validator)
    height: int = 0
    last_hash: bytes = b""
    genesis: bytes = b""
    transactions: int = 0
    signatures: int = 0
    orderers: Counter[str] = field(default_factory=Counter)
    """How many blocks each orderer organisation signed."""
    unsigned: list[int] = field(default_factory=list)
    """The blocks whose metadata say more than the orderers signed, which any one of them can bring about."""
    endorsed_by: Counter[int] = field(default_factory=Counter)
    """How many transactions so many organisations endorsed, by those whom the policies ask for."""
    rules: Rules = field(default_factory=Rules)
    """Whose signatures counted, block by block."""
    _configuration: Configuration | None = None
    _config_block: int = 0
    _view: View | None = None
    """The place of the last block in the order, where a quorum of orderers notes it."""
    resumed: Resumed | None = None
    """The earlier run that this one goes on from; its blocks are only followed, hash by hash."""

    @property
    def configuration(self) -> Configuration:
        """The configuration in force."""
        if self._configuration is None:
            raise AssertionError("nothing is known before the first block")
        return self._configuration

    def take(self, raw: bytes) -> Iterator[Committed]:
        """Check the next block and yield its valid transactions."""
        return self._take(_read(raw))

    def take_ahead(
        self, raws: Sequence[bytes], foresee: Callable[[list[NamespaceSet]], object] = list
    ) -> Iterator[Iterator[Committed]]:
        """Check the next blocks, each when it is asked for; their signatures are checked together first.

        That takes less time: the code that checks one is still at hand for the next. `foresee` is told
        what each of their transactions says that it read and wrote, whether or not it will count.
        """
        blocks = [_read(raw) for raw in raws]
        seen = self._foresee(blocks)
        for block in blocks:
            for form in block.forms if isinstance(block, Block) else ():
                if isinstance(form, Form):
                    foresee(form.sets)
        for block in blocks:
            yield self._take(block)
        for identity in seen:
            identity.forget()

    def _foresee(self, blocks: Sequence[Block | MalformedError]) -> set[Identity]:
        """Check the signatures of blocks to come by those who are members now, and return whose they are."""
        seen: set[Identity] = set()
        if self._configuration is None or (self.resumed and self.height < self.resumed.marks.height):
            return seen
        identify = self._configuration.members.identify
        # All are read before the first is checked, so that nothing but checks stands between two of them.
        for named, message, signature in _signatures(blocks, self._configuration):
            try:
                identity = identify(named)
            except UntrustedError:
                continue
            identity.foresee(message, signature)
            seen.add(identity)
        return seen

    def _take(self, block: Block | MalformedError) -> Iterator[Committed]:
        number = self.height
        if isinstance(block, MalformedError):
            if self._configuration is None:
                # Whatever follows is judged by the first block.
                raise block
            self.findings.fail("hash chain", f"it is no block: {block}", f"block {number}")
            self.height += 1
            return
        self._check_links(block, number)
        if number == 0:
            self._begin(block)
        elif self.resumed is None or number >= self.resumed.marks.height:
            self._check_orderers(block, number)
            yield from self._check_transactions(block, number)
        self.last_hash = block.hash
        self.height += 1
        if self.resumed is not None and self.height == self.resumed.marks.height:
            self._resume(block, self.resumed)

    @property
    def marks(self) -> Marks:
        """Where this run stands, for the one that goes on from here."""
        return Marks(
            self.configuration.channel,
            self.genesis.hex(),
            self.height,
            self.last_hash.hex(),
            self.validator.commit_hash.hex() or bytes(32).hex(),
            self._config_block,
        )

    def go_on(self, resumed: Resumed) -> None:
        """Stand where an earlier run stood: the next block has to follow the last that it saw."""
        marks = resumed.marks
        self.genesis, self.last_hash = bytes.fromhex(marks.genesis), bytes.fromhex(marks.block_hash)
        self.height, self.resumed = marks.height, resumed
        self._take_up(resumed)

    def _take_up(self, resumed: Resumed) -> None:
        config = parse(configtx.Config, resumed.configuration)
        self._configuration = Configuration(resumed.marks.channel, config)
        self._config_block = resumed.marks.config_block
        self._begin_rules()

    def _begin_rules(self) -> None:
        validator = self.validator
        self.rules = Rules()
        definitions = validator.endorsements.definitions
        self.rules.begin(max(self.height - 1, 0), self.configuration, validator.state, definitions)

    def _resume(self, block: Block, resumed: Resumed) -> None:
        """Take up what an earlier run verified, if this is the chain that it saw."""
        marks, where = resumed.marks, f"block {block.number}"
        same = (self.genesis.hex(), block.hash.hex()) == (marks.genesis, marks.block_hash)
        self.findings.check("checkpoint", same, "it is another block than was verified before", where)
        self._take_up(resumed)
        if block.number > 0 and self.configuration.ordering.is_bft:
            self._view = block.view
        if block.number > 0:
            self._check_commit_hash(block, block.number)

    def _begin(self, block: Block) -> None:
        """Take the first block, which nobody signs: it must be known from outside."""
        envelope = block.config_envelope()
        if envelope is None:
            raise MalformedError("the first block holds no configuration")
        self.genesis = block.hash
        self._configuration = Configuration.from_envelope(envelope)
        if self.resumed is None:
            self.validator.remember(block)
            self._begin_rules()
        check = self.findings.check
        flag, rest = block.flags == FIRST[FLAGS], (*block.metadata[:FLAGS], *block.metadata[FLAGS + 1 :])
        check("validity flags", flag, "its configuration is not noted as valid", "block 0")
        plain = rest == (*FIRST[:FLAGS], *FIRST[FLAGS + 1 :])
        check("orderers", plain, "a first block notes nothing of orderers, and this one does", "block 0")
        if self.anchor.genesis is not None:
            same = block.hash == self.anchor.genesis
            check("anchor", same, f"its hash is sha256:{block.hash.hex()}, another channel's", "block 0")
        if self.anchor.roots is not None:
            foreign = self.anchor.roots.missing(self.configuration)
            check("anchor", not foreign, f"other roots than known for {', '.join(foreign)}", "block 0")
        if self.configuration.ordering.is_bft:
            self._view = View(0, 0)
            fault = self.configuration.ordering_fault
            check("configuration", not fault, fault, "block 0")

    def _check_links(self, block: Block, number: int) -> None:
        links = (block.number, block.previous, block.real_data_hash)
        if links == (number, self.last_hash, block.data_hash):
            self.findings.count("hash chain", len(links))
            return
        where, check = f"block {number}", self.findings.check
        check("hash chain", block.number == number, f"it says that it is block {block.number}", where)
        check("hash chain", block.previous == self.last_hash, "it follows another block", where)
        same = block.real_data_hash == block.data_hash
        check("hash chain", same, "its transactions are not those of its header", where)

    def _check_orderers(self, block: Block, number: int) -> None:
        where, configuration = f"block {number}", self.configuration
        try:
            found = block.orderers(configuration)
            ordered = block.is_ordered(configuration, found)
            expected = number if block.config_envelope() is not None else self._config_block
            known = block.last_config == expected
            if not block.is_repeated:
                self.unsigned.append(number)
            self._check_view(block, configuration, where)
        except MalformedError as error:
            self.findings.fail("orderers", str(error), where)
            return
        self.signatures += len(found)
        for name in {identity.organisation.msp_id for identity in found}:
            self.orderers[name] += 1
        self.findings.count("orderers", 2)
        if not ordered:
            signed = ", ".join(identity.name[:64] for identity in found) or "nobody who may"
            ordering = configuration.ordering
            needed = f", and {ordering.quorum} consenters must" if ordering.is_bft else ""
            self.findings.fail("orderers", f"it is signed by {signed}{needed}", where)
        if not known:
            self.findings.fail("orderers", f"it names block {block.last_config} as configuration", where)

    def _check_view(self, block: Block, configuration: Configuration, where: str) -> None:
        """Check that a quorum's decisions follow each other; the first after another consensus is new."""
        last, self._view = self._view, block.view if configuration.ordering.is_bft else None
        if last is not None and self._view is not None:
            what = f"the orderers took it for {self._view}, after {last}"
            self.findings.check("orderers", self._view.follows(last), what, where)

    def _check_transactions(self, block: Block, number: int) -> Iterator[Committed]:
        envelope, flags = block.config_envelope(), block.flags
        if envelope is not None:
            self._check_configuration(envelope, number)
            judged = [Judged(0, tx_id_of(block.data[0]), Verdict.VALID)]
        else:
            judged = self.validator.judge(block, self.configuration)
        updates = self.validator.settle(number, judged, flags)
        found = bytes([Verdict.VALID if item.counts else item.verdict for item in judged])
        for item in judged:
            position = Position(block.number, item.index)
            self._compare(position, item, flags)
            if item.counts and item.transaction is not None:
                yield Committed(position, item.transaction)
        self.validator.apply(number, found, updates)
        definitions = self.validator.endorsements.definitions
        self.rules.take(number, updates, self.configuration, definitions)
        self._check_commit_hash(block, number)

    def _check_configuration(self, envelope: object, number: int) -> None:
        where = f"block {number}"
        self.findings.count("configuration")
        try:
            check_config_creator(envelope, self.configuration)
            self._configuration = self.configuration.check_update(envelope)
            self._config_block = number
            definitions = self.validator.endorsements.definitions
            self.rules.reconfigure(number, self._configuration, definitions)
        except (UnauthorisedError, UntrustedError, MalformedError, InvalidError) as error:
            self.findings.fail("configuration", str(error), where)

    def _compare(self, position: Position, item: Judged, flags: bytes) -> None:
        """Judge a transaction's noted verdict, and count what was checked of it."""
        noted = flags[item.index] if item.index < len(flags) else None
        self.transactions += 1
        self.findings.count("validity flags")
        if noted != item.verdict:
            where = f"{position} ({item.tx_id[:16]})" if item.tx_id else str(position)
            report_verdict(self.findings, item, noted, where)
        if item.transaction is None:
            return
        endorsers = len(item.transaction.endorsers)
        self.findings.count("creators")
        self.findings.count("endorsements", endorsers)
        self.signatures += 1 + endorsers
        if item.counts:
            self.endorsed_by[len(item.transaction.endorsed_by)] += 1

    def _check_commit_hash(self, block: Block, number: int) -> None:
        try:
            noted = block.commit_hash
        except MalformedError:
            noted = b""
        same = noted == self.validator.commit_hash
        self.findings.check("commit hashes", same, "it is another one", f"block {number}")
        if not same and noted:
            # What is wrong in one block is said of that block, and not of all that follow.
            self.validator.commit_hash = noted


def _read(raw: bytes) -> Block | MalformedError:
    try:
        return Block.from_bytes(raw)
    except MalformedError as error:
        return error


def _signatures(blocks: Sequence[Block | MalformedError], configuration: Configuration) -> list[Signed]:
    """Return what can be read of the signatures in blocks: the orderers', creators' and endorsers'."""
    found: list[Signed] = []
    for block in blocks:
        if isinstance(block, MalformedError):
            continue
        found += _orderers_signatures(block, configuration)
        for form in block.forms:
            if isinstance(form, Form):
                found.append(form.created)
                found += form.endorsed
    return found


def _orderers_signatures(block: Block, configuration: Configuration) -> list[Signed]:
    """Return the orderers' signatures; none where they cannot be read, which is said when it is judged."""
    try:
        return block.signed(configuration)
    except MalformedError:
        return []
