// Package secret finds what opens something: keys of known services by their form,
// private keys, passwords in addresses, and texts that look like chance.
package secret
