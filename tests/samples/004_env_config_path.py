mindspore.set_context(env_config_path="./mindspore_config.json")
