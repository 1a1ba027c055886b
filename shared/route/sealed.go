package route

// SealedConfig is the name under which a saved config with secrets is sealed; the record's body
// then has masked secrets. When HasSecret reports it, code that compiles a config must read
// resource.Record.OpenSecrets(...)[SealedConfig].
const SealedConfig = "config"
