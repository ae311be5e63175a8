"""torch's private functions, and torchspore's operators in torch's dispatcher."""
