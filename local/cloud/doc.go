// Package cloud is what `-store aws` of the local gateway needs: the stores on AWS
// or on what AWS_ENDPOINT_URL names, stand-ins where nothing names any, and the
// real function binaries. The SDK of AWS is a fifth of a program and half of what
// lies in its memory at rest; a laptop's gateway on its own files links none of it.
package cloud
