from azr_population.config.differences import INCIDENTAL, touches_only


def test_where_azr_keeps_a_run_is_no_difference():
    assert touches_only("trainer.default_local_dir", INCIDENTAL)
    assert not touches_only("trainer.total_epochs", INCIDENTAL)
