"""Processes that hold the members: worker groups on `verl.single_controller`, for both hosts."""
