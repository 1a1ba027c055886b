package route

// SealedConfig is the name under which a saved config that holds secrets is
// sealed as a whole; the record's body then shows them masked. Who compiles a
// config reads resource.Record.OpenSecrets(...)[SealedConfig] when HasSecret
// says that there is one.
const SealedConfig = "config"
