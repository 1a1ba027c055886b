// Package cloud implements `-store aws` of the local gateway: the stores, on AWS or at
// AWS_ENDPOINT_URL; AWS emulators if no variable names an endpoint; and the real function
// binaries. The AWS SDK is a fifth of a program, and half of the memory of an idle gateway. The
// default local gateway, with stores in files, is therefore built without it.
package cloud
