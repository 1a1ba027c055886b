// Package cloud is what `-store aws` of the local gateway needs: the stores, on AWS or on
// what AWS_ENDPOINT_URL names; stand-ins of AWS where no variable names one; and the real
// function binaries. The SDK of AWS is a fifth of a program, and half of the memory that an
// idle gateway uses. A laptop's gateway that keeps its own files is therefore built without
// it.
package cloud
