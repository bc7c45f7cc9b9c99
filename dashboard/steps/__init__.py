"""The page of one step: what the journal says, what the provider says, the stored bytes with their proofs.

It shows which decisions are possible; the decision itself is made in decisions/."""
