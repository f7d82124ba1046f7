"""Consumer groups of KIP-848: members say what they want, the coordinator decides who reads what."""
