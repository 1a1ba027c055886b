// Package secret finds credentials: keys of known services by their format, private keys,
// passwords in URLs, and random texts.
package secret
