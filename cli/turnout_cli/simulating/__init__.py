"""A whole cluster in one process under a virtual clock: the product's deciding code, and everything else made up."""
