"""The test kit: the live network and who acts on it, scripted peers, and a channel in memory."""
