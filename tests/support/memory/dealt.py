"""A channel whose orderers are dealt out to the organisations: by Raft, and by BFT with a quorum."""

from executor.audit.fabric import messages as m
from executor.audit.fabric.orderers import BFT
from support.memory.blocks import Recorder, _config, _set, authority, sign_block

ORGANISATIONS = ("Org1MSP", "Org2MSP", "Org3MSP", "Org4MSP")


class DealtRecorder(Recorder):
    """Raft, as network/lib/channel.sh describes it: each organisation has an orderer that signs alone."""

    def __init__(self, organisations=ORGANISATIONS):
        super().__init__(organisations)

    def configure(self):
        config = _config(self.organisations, dealt=True)
        return authority(self.organisations[0]).issue("orderer1", "orderer"), config


class BftRecorder(DealtRecorder):
    """BFT with four orderers, of which three sign."""

    view = 0

    def configure(self):
        owners = [self.organisations[i % len(self.organisations)] for i in range(4)]
        names = [(owner, f"orderer{i}") for i, owner in enumerate(owners, 1)]
        self.consenters = {
            i: authority(owner).issue(name, "orderer") for i, (owner, name) in enumerate(names, 1)
        }
        _, config = super().configure()
        agree(config.channel_group.groups["Orderer"], self.consenters.items())
        return self.consenters[1], config

    def sign(self, block, orderer):
        self.sign_by(block, list(self.consenters.items())[:3])

    def sign_by(self, block, signers, view=None):
        """Let orderers sign a block as a decision of a view."""
        view = (self.view, block.header.number) if view is None else view
        said = m.common.OrdererBlockMetadata(
            last_config={"index": self.config_number}, consenter_metadata=metadata(*view)
        )
        sign_block(block, said, signers)


def metadata(view, sequence):
    """What SmartBFT's orderers sign besides: the view and the number of the decision, below 128 each."""
    return bytes([8, view] if view else []) + bytes([16, sequence, 24, 1])


def agree(orderer, consenters, quorum=3):
    """Let blocks be signed by so many of some consenters, given as (number, identity)."""
    _set(orderer, "ConsensusType", m.orderer.ConsensusType(type=BFT))
    mapping, envelope = m.configuration.Orderers(), m.policies.SignaturePolicyEnvelope()
    envelope.rule.n_out_of.n = quorum
    for place, (number, identity) in enumerate(consenters):
        mapping.consenter_mapping.add(id=number, msp_id=identity.msp_id, identity=identity.certificate)
        envelope.rule.n_out_of.rules.add(signed_by=place)
        envelope.identities.add(principal_classification=2, principal=identity.creator)
    _set(orderer, "Orderers", mapping)
    policy = orderer.policies["BlockValidation"].policy
    policy.type, policy.value = 1, envelope.SerializeToString()
