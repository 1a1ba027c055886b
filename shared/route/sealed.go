package route

// SealedConfig is the name under which a saved config with secrets is sealed as a whole;
// the record's body then shows them masked. When HasSecret reports it, code that compiles a
// config must read resource.Record.OpenSecrets(...)[SealedConfig].
const SealedConfig = "config"
