// Package secret finds credentials: keys of known services by their form, private keys,
// passwords in addresses, and texts that look random.
package secret
