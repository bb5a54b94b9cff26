"""LoRA adapters: one member's factors, the bank of all members, PEFT folders in and out."""
