"""Real Fabric blocks of what happens on the channel in memory: signed, endorsed, ordered and committed.

The contracts, read sets and write sets are those of `support.memory.ledger`; here each transaction gets a
creator's certificate of a real authority, endorsements of a majority, and a place in a block that an orderer
signs. `Recorder.blocks` is what a peer would serve; `Recorder.bundle()` what `executor audit export` writes.
"""

import hashlib
import io
import json
from datetime import UTC, datetime, timedelta
from functools import cache

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from chaincode.shim import peer_of
from chaincode.shim.identity import ATTRIBUTES_OID
from executor.audit.bundle import MANIFEST, BundleWriter, Manifest, block_name
from executor.audit.fabric import messages as m
from executor.audit.fabric.block import FIRST, Block
from executor.audit.fabric.configuration import Configuration
from executor.audit.fabric.state import Key, Update, Version
from executor.audit.fabric.validation import commit_hash
from executor.audit.verify import copies_of
from executor.ledger.gateway.identity import Identity
from support.memory.ledger import VALID, Ledger, Member, encode

CHANNEL, PROCESS = "attestree", "fraud-2026"
ORDERER = "OrdererMSP"
START = datetime(2026, 11, 15, tzinfo=UTC)
CODES = {VALID: 0, "MVCC_READ_CONFLICT": 11, "PHANTOM_READ_CONFLICT": 12}
CHAINCODES = ("image", "orchestration", "execution-record", "model")


class Authority:
    """An organisation's certificate authority, the same in every run."""

    def __init__(self, msp_id):
        self.msp_id = msp_id
        self.key = _key(f"authority {msp_id}")
        self.name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, f"ca.{msp_id}")])
        constraints = [
            (x509.BasicConstraints(True, 0), True),
            (x509.SubjectKeyIdentifier.from_public_key(self.key.public_key()), False),
        ]
        self.certificate = self._sign(self.name, self.key.public_key(), 1, constraints)
        self.pem = self.certificate.public_bytes(serialization.Encoding.PEM)
        self._issued = {}

    def issue(self, name, unit, **attributes):
        """A member of the organisation, as a Fabric CA would enrol it."""
        known = (name, unit, *sorted(attributes.items()))
        if known not in self._issued:
            key = _key(f"{self.msp_id} {known}")
            subject = x509.Name(
                [
                    x509.NameAttribute(x509.NameOID.ORGANIZATIONAL_UNIT_NAME, unit),
                    x509.NameAttribute(x509.NameOID.COMMON_NAME, name),
                ]
            )
            extensions = [(x509.AuthorityKeyIdentifier.from_issuer_public_key(self.key.public_key()), False)]
            if attributes:
                raw = json.dumps({"attrs": attributes}).encode()
                extensions.append((x509.UnrecognizedExtension(ATTRIBUTES_OID, raw), False))
            serial = 2 + int.from_bytes(hashlib.sha256(repr(known).encode()).digest()[:8], "big")
            certificate = self._sign(subject, key.public_key(), serial, extensions)
            pem = certificate.public_bytes(serialization.Encoding.PEM)
            self._issued[known] = Identity(self.msp_id, pem, key)
        return self._issued[known]

    def revoke(self, identity):
        """A revocation list that names one member."""
        certificate = x509.load_pem_x509_certificate(identity.certificate)
        entry = (
            x509.RevokedCertificateBuilder()
            .serial_number(certificate.serial_number)
            .revocation_date(START)
            .build()
        )
        made = (
            x509.CertificateRevocationListBuilder()
            .issuer_name(self.name)
            .last_update(START)
            .next_update(START + timedelta(days=365))
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(self.key.public_key()), False)
            .add_revoked_certificate(entry)
            .sign(self.key, hashes.SHA256())
        )
        return made.public_bytes(serialization.Encoding.PEM)

    def _sign(self, subject, public, serial, extensions):
        builder = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self.name)
            .public_key(public)
            .serial_number(serial)
            .not_valid_before(START - timedelta(days=1))
            .not_valid_after(START + timedelta(days=3650))
        )
        for extension, critical in extensions:
            builder = builder.add_extension(extension, critical)
        return builder.sign(self.key, hashes.SHA256(), ecdsa_deterministic=True)


@cache
def authority(msp_id):
    return Authority(msp_id)


def _key(seed):
    return ec.derive_private_key(
        int.from_bytes(hashlib.sha256(seed.encode()).digest(), "big") >> 8, ec.SECP256R1()
    )


class Recorder:
    """Makes a channel of three organisations on a ledger in memory, and keeps its blocks."""

    def __init__(self, organisations=("Org1MSP", "Org2MSP", "Org3MSP")):
        self.organisations = organisations
        self.peers = [authority(name).issue("peer", "peer") for name in organisations]
        self.orderer, self.config = self.configure()
        self.blocks, self.commit_hash, self.last, self.config_number = [], b"", b"", 0
        self._add([_config_envelope(self.config, None, self.orderer)], [], {})

    def configure(self):
        """The orderer that signs, and the first configuration."""
        return authority(ORDERER).issue("orderer1", "orderer"), _config(self.organisations)

    def define(self, names=CHAINCODES):
        """Commit the definitions of chaincodes, as the lifecycle does."""
        tx = self.envelope("_lifecycle", _definition_set(names), self.peers[0])
        updates = {
            Key("_lifecycle", "", key): Update(Version(len(self.blocks), 0), value, None)
            for key, value in _definition_writes(names)
        }
        self._add([tx], [0], updates)

    def envelope(self, chaincode, results, creator, nonce=None, endorsers=None, time=START, args=()):  # noqa: PLR0917
        """A transaction of a creator, endorsed by a majority of peers."""
        nonce = nonce if nonce is not None else b"nonce %d" % len(self.blocks)
        tx_id = hashlib.sha256(nonce + creator.creator).hexdigest()
        identifier = m.chaincode.ChaincodeID(name=chaincode)
        extension = m.proposal.ChaincodeHeaderExtension(chaincode_id=identifier).SerializeToString()
        channel = m.common.ChannelHeader(type=3, channel_id=CHANNEL, tx_id=tx_id, extension=extension)
        channel.timestamp.FromDatetime(time)
        signature = m.common.SignatureHeader(creator=creator.creator, nonce=nonce).SerializeToString()
        header = m.common.Header(channel_header=channel.SerializeToString(), signature_header=signature)
        spec = m.chaincode.ChaincodeInvocationSpec()
        spec.chaincode_spec.chaincode_id.name = chaincode
        spec.chaincode_spec.input.args.extend(args)
        call = m.proposal.ChaincodeProposalPayload(input=spec.SerializeToString()).SerializeToString()
        bound = hashlib.sha256(header.channel_header + signature + call).digest()
        done = m.proposal.ChaincodeAction(
            results=results.SerializeToString(),
            chaincode_id=m.chaincode.ChaincodeID(name=chaincode, version="1"),
        )
        answer = m.response.ProposalResponsePayload(
            proposal_hash=bound, extension=done.SerializeToString()
        ).SerializeToString()
        if endorsers is None:
            # Its own organisation's peer first, as clients ask: some things need that one's endorsement.
            own_first = sorted(self.peers, key=lambda peer: peer.msp_id != creator.msp_id)
            endorsers = own_first[: len(self.peers) // 2 + 1]
        action = m.transaction.ChaincodeActionPayload(chaincode_proposal_payload=call)
        action.action.proposal_response_payload = answer
        for peer in endorsers:
            action.action.endorsements.add(endorser=peer.creator, signature=peer.sign(answer + peer.creator))
        tx = m.transaction.Transaction()
        tx.actions.add(header=signature, payload=action.SerializeToString())
        payload = m.common.Payload(header=header, data=tx.SerializeToString()).SerializeToString()
        return m.common.Envelope(payload=payload, signature=creator.sign(payload)).SerializeToString()

    def commit(self, envelopes, verdicts, updates):
        """Put transactions into a block, with what a peer notes about them."""
        self._add(envelopes, [CODES.get(verdict, verdict) for verdict in verdicts], updates)

    def update(self, change, admins):
        """Change the configuration by an update that administrators sign."""
        config = m.configtx.Config.FromString(self.config.SerializeToString())
        read, write = m.configtx.ConfigGroup(), m.configtx.ConfigGroup()
        change(config.channel_group, read, write)
        config.sequence += 1
        update = m.configtx.ConfigUpdate(channel_id=CHANNEL, read_set=read, write_set=write)
        signed = m.configtx.ConfigUpdateEnvelope(config_update=update.SerializeToString())
        for admin in admins:
            header = m.common.SignatureHeader(creator=admin.creator, nonce=b"n").SerializeToString()
            signed.signatures.add(
                signature_header=header, signature=admin.sign(header + signed.config_update)
            )
        last = _envelope(m.common.CONFIG_UPDATE, signed.SerializeToString(), admins[0])
        self.config, self.config_number = config, len(self.blocks)
        self._add([_config_envelope(config, last, self.orderer)], [0], {})

    def bundle(self, process=None, blocks=None, first=0):
        """What `executor audit export` would write, about the process of the tests if it is there."""
        blocks = self.blocks if blocks is None else blocks
        if process is None:
            process = PROCESS if any(f"\0process\0{PROCESS}\0".encode() in raw for raw in blocks) else ""
        file = io.BytesIO()
        writer = BundleWriter(file)
        writer.add(MANIFEST, Manifest(CHANNEL, process, len(blocks), self.genesis, first).to_bytes())
        for number, raw in enumerate(blocks[first:], first):
            writer.add(block_name(number), raw)
        for name, content in copies_of(Configuration(CHANNEL, self.config)):
            writer.add(name, content)
        writer.close()
        return file.getvalue()

    @property
    def genesis(self):
        return f"sha256:{Block.from_bytes(self.blocks[0]).hash.hex()}"

    def _add(self, envelopes, flags, updates):
        number = len(self.blocks)
        raw = self.make_block(number, self.last, envelopes)
        block = m.common.Block.FromString(raw)
        if number:
            self.commit_hash = commit_hash(bytes(flags), updates, self.commit_hash)
            block.metadata.metadata[2] = bytes(flags)
            noted = m.common.Metadata(value=self.commit_hash)
            block.metadata.metadata[4] = noted.SerializeToString()
        else:
            del block.metadata.metadata[:]
            block.metadata.metadata.extend(FIRST)
        raw = block.SerializeToString()
        self.blocks.append(raw)
        self.last = Block.from_bytes(raw).hash

    def make_block(self, number, previous, envelopes, orderer=None):
        """A block as an orderer makes and signs it."""
        orderer = orderer or self.orderer
        block = m.common.Block()
        block.data.data.extend(envelopes)
        block.header.number, block.header.previous_hash = number, previous
        block.header.data_hash = hashlib.sha256(b"".join(envelopes)).digest()
        block.metadata.metadata.extend([b""] * 5)
        self.sign(block, orderer)
        return block.SerializeToString()

    def sign(self, block, orderer):
        """Put into a block's metadata what an orderer signs, and its signature."""
        sign_block(block, m.common.OrdererBlockMetadata(last_config={"index": self.config_number}), [orderer])


def sign_block(block, said, signers):
    """Let orderers sign a block, each as an identity or, if it comes as (number, identity), by its number."""
    metadata = m.common.Metadata(value=said.SerializeToString())
    header = Block.from_bytes(block.SerializeToString()).header
    for signer in signers:
        if isinstance(signer, tuple):
            number, identity = signer
            name = m.common.IdentifierHeader(identifier=number, nonce=b"n").SerializeToString()
            placed = {"identifier_header": name}
        else:
            identity = signer
            name = m.common.SignatureHeader(creator=signer.creator, nonce=b"n").SerializeToString()
            placed = {"signature_header": name}
        metadata.signatures.add(**placed, signature=identity.sign(metadata.value + name + header))
    block.metadata.metadata[0] = metadata.SerializeToString()
    repeated = m.common.Metadata(value=said.last_config.SerializeToString())
    block.metadata.metadata[1] = repeated.SerializeToString()


def record(ledger_class):
    """Make a ledger in memory that records what happens on it as blocks."""

    class Recorded(ledger_class):
        def __init__(self, *arguments, **options):
            self.recorder = Recorder()
            self.recorder.define()
            self._identities, self._made = {}, {}
            super().__init__(*arguments, **options)

        def member(self, name, organisation, **attributes):
            identity = authority(organisation).issue(name, "client", **attributes)
            self._identities[identity.creator] = identity
            return Member(self, name, organisation, identity.certificate)

        def endorse(self, creator, chaincode, *arguments, tx_id=None, time=None, transient=None):
            self.count += 1
            nonce = b"tx%d" % self.count
            made = super().endorse(
                creator,
                chaincode,
                *arguments,
                tx_id=tx_id or hashlib.sha256(nonce + creator).hexdigest(),
                time=time,
                transient=transient,
            )
            said = [part if isinstance(part, bytes) else encode(part) for part in arguments]
            self._made[made.tx_id] = (nonce, creator, chaincode, said)
            return made

        def commit(self, block):
            # The first two blocks of the recorder are the configuration and the definitions.
            self.blocks = len(self.recorder.blocks) - 1
            verdicts = super().commit(block)
            envelopes, updates = [], {}
            for number, (tx, verdict) in enumerate(zip(block, verdicts, strict=True)):
                nonce, creator, chaincode, said = self._made[tx.tx_id]
                results = _results(tx)
                envelopes.append(
                    self.recorder.envelope(
                        chaincode, results, self._identities[creator], nonce=nonce, time=tx.time, args=said
                    )
                )
                if verdict == VALID:
                    for place, value in tx.writes.items():
                        version = Version(self.blocks, number)
                        key, stored = _stored(place, value)
                        updates[key] = Update(version, stored, tx.policies.get(place))
            self.recorder.commit(envelopes, verdicts, updates)
            return verdicts

    return Recorded


def _results(tx):
    """The read and write sets of a transaction as a peer signs them."""
    spaces = {name for name, _ in (*tx.reads, *tx.writes)} | {name for name, *_ in tx.ranges}
    made = m.rwset.TxReadWriteSet()
    for name in sorted({space.partition("$")[0] for space in spaces}):
        part = m.kvrwset.KVRWSet()
        for (namespace, key), version in sorted(tx.reads.items(), key=lambda item: item[0]):
            if namespace == name:
                read = part.reads.add(key=key)
                if version is not None:
                    read.version.block_num, read.version.tx_num = version
        for namespace, start, end, found in tx.ranges:
            if namespace == name:
                info = part.range_queries_info.add(start_key=start, end_key=end, itr_exhausted=True)
                info.raw_reads.SetInParent()
                for key, version in found:
                    read = info.raw_reads.kv_reads.add(key=key)
                    read.version.block_num, read.version.tx_num = version
        for (namespace, key), value in sorted(tx.writes.items(), key=lambda item: item[0]):
            if namespace == name:
                part.writes.add(key=key, value=value or b"", is_delete=value is None)
        for (namespace, key), policy in sorted(tx.policies.items()):
            if namespace == name:
                entry = m.kvrwset.KVMetadataEntry(name="VALIDATION_PARAMETER", value=policy)
                part.metadata_writes.add(key=key, entries=[entry])
        added = made.ns_rwset.add(namespace=name, rwset=part.SerializeToString())
        for space in sorted(space for space in spaces if space.startswith(f"{name}$")):
            hashed = added.collection_hashed_rwset.add(collection_name=space.partition("$")[2])
            hashed.hashed_rwset = _hashed(tx, space).SerializeToString()
    return made


def _hashed(tx, space):
    """What the block says of a collection: hashes of keys and values."""
    made = m.kvrwset.HashedRWSet()
    for (namespace, key), version in sorted(tx.reads.items(), key=lambda item: item[0]):
        if namespace == space:
            read = made.hashed_reads.add(key_hash=_sha256(key.encode()))
            if version is not None:
                read.version.block_num, read.version.tx_num = version
    for place, value in sorted(tx.writes.items(), key=lambda item: item[0]):
        if place[0] == space:
            key, stored = _stored(place, value)
            made.hashed_writes.add(key_hash=key.name, value_hash=stored or b"", is_delete=stored is None)
    return made


def _stored(place, value):
    """The key and the value as every peer has them."""
    (space, key), value = place, value or None
    namespace, _, collection = space.partition("$")
    if not collection:
        return Key(namespace, "", key), value
    return Key(namespace, collection, _sha256(key.encode())), None if value is None else _sha256(value)


def _sha256(raw):
    return hashlib.sha256(raw).digest()


def _collections(organisations):
    """The organisations' own collections, by their endorsement, and those of trees, by a majority's."""
    package = m.collection.CollectionConfigPackage()
    for name, members in Ledger().collections.items():
        made = package.config.add().static_collection_config
        made.name = name
        if members[1:] == () and members[0] in organisations:
            rule = m.policies.SignaturePolicyEnvelope.FromString(peer_of(members[0]).to_bytes())
            made.endorsement_policy.signature_policy.CopyFrom(rule)
    return package.SerializeToString()


def _definition_writes(names):
    reference = m.policy.ApplicationPolicy(channel_config_policy_reference="/Channel/Application/Endorsement")
    rules = m.definition.ChaincodeValidationInfo(
        validation_plugin="vscc", validation_parameter=reference.SerializeToString()
    )
    served = m.definition.ChaincodeEndorsementInfo(version="1", endorsement_plugin="escc")
    fields = {"ValidationInfo": rules, "EndorsementInfo": served}
    for name in names:
        described = m.lifecycle.StateMetadata(
            datatype="ChaincodeDefinition",
            fields=["Sequence", "EndorsementInfo", "ValidationInfo", "Collections"],
        )
        yield f"namespaces/metadata/{name}", described.SerializeToString()
        yield f"namespaces/fields/{name}/Sequence", m.lifecycle.StateData(Int64=1).SerializeToString()
        collections = m.lifecycle.StateData(Bytes=_collections(("Org1MSP", "Org2MSP", "Org3MSP")))
        yield f"namespaces/fields/{name}/Collections", collections.SerializeToString()
        for field, value in fields.items():
            data = m.lifecycle.StateData(Bytes=value.SerializeToString())
            yield f"namespaces/fields/{name}/{field}", data.SerializeToString()


def _definition_set(names):
    part = m.kvrwset.KVRWSet()
    for key, value in sorted(_definition_writes(names)):
        part.writes.add(key=key, value=value)
    made = m.rwset.TxReadWriteSet()
    made.ns_rwset.add(namespace="_lifecycle", rwset=part.SerializeToString())
    return made


def _config(organisations, *, dealt=False):
    """A configuration as network/lib/channel.sh describes it."""
    channel = m.configtx.ConfigGroup(mod_policy="Admins")
    _policies(channel, Readers="ANY", Writers="ANY", Admins="MAJORITY")
    _set(channel, "Capabilities", _capability("V3_0"))
    orderer, application = channel.groups["Orderer"], channel.groups["Application"]
    for group in (orderer, application):
        group.mod_policy = "Admins"
        _policies(group, Readers="ANY", Writers="ANY", Admins="MAJORITY")
    _meta(orderer, "BlockValidation", "ANY", "Writers")
    _set(orderer, "ConsensusType", m.orderer.ConsensusType(type="etcdraft"))
    _set(orderer, "Capabilities", _capability("V2_0"))
    _meta(application, "Endorsement", "MAJORITY", "Endorsement")
    _meta(application, "LifecycleEndorsement", "MAJORITY", "Endorsement")
    _set(application, "Capabilities", _capability("V2_5"))
    if dealt:
        for name in organisations:
            _organisation(orderer, name, writers=m.principal.MSPRole.ORDERER)
    else:
        _organisation(orderer, ORDERER)
    for name in organisations:
        _organisation(application, name)
    return m.configtx.Config(channel_group=channel)


def _organisation(group, msp_id, writers=0):
    made = group.groups[msp_id]
    made.mod_policy = "Admins"
    config = m.msp_config.FabricMSPConfig(name=msp_id, root_certs=[authority(msp_id).pem])
    config.fabric_node_ous.enable = True
    for role in ("client", "peer", "admin", "orderer"):
        unit = getattr(config.fabric_node_ous, f"{role}_ou_identifier")
        unit.organizational_unit_identifier = role
    _set(made, "MSP", m.msp_config.MSPConfig(config=config.SerializeToString()))
    for name, role in (("Readers", 0), ("Writers", writers), ("Admins", 1), ("Endorsement", 3)):
        envelope = m.policies.SignaturePolicyEnvelope()
        envelope.rule.n_out_of.n = 1
        envelope.rule.n_out_of.rules.add(signed_by=0)
        wanted = m.principal.MSPRole(msp_identifier=msp_id, role=role).SerializeToString()
        envelope.identities.add(principal_classification=0, principal=wanted)
        policy = made.policies[name]
        policy.mod_policy = "Admins"
        policy.policy.type, policy.policy.value = 1, envelope.SerializeToString()


def _policies(group, **rules):
    for name, rule in rules.items():
        _meta(group, name, rule, name)


def _meta(group, name, rule, inner):
    made = m.policies.ImplicitMetaPolicy(sub_policy=inner, rule=rule)
    policy = group.policies[name]
    policy.mod_policy = "Admins"
    policy.policy.type, policy.policy.value = 3, made.SerializeToString()


def _capability(name):
    made = m.configuration.Capabilities()
    made.capabilities[name].SetInParent()
    return made


def _set(group, name, message):
    group.values[name].mod_policy = "Admins"
    group.values[name].value = message.SerializeToString()


def _config_envelope(config, last, orderer):
    made = m.configtx.ConfigEnvelope(config=config)
    if last is not None:
        made.last_update.CopyFrom(m.common.Envelope.FromString(last))
    return _envelope(m.common.CONFIG, made.SerializeToString(), orderer)


def _envelope(kind, data, creator):
    channel = m.common.ChannelHeader(type=kind, channel_id=CHANNEL).SerializeToString()
    signature = m.common.SignatureHeader(creator=creator.creator, nonce=b"n").SerializeToString()
    header = m.common.Header(channel_header=channel, signature_header=signature)
    payload = m.common.Payload(header=header, data=data).SerializeToString()
    return m.common.Envelope(payload=payload, signature=creator.sign(payload)).SerializeToString()
