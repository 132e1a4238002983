"""Settings of Hypothesis that do not depend on how fast or how busy the machine is."""

from hypothesis import HealthCheck, settings


def use_any_machine_profile() -> None:
    """Let no example fail, and no test be given up, because something took long."""
    settings.register_profile(
        "any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow]
    )
    settings.load_profile("any machine")
