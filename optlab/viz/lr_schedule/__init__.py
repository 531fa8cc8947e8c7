"""Pictures of learning-rate schedules."""
