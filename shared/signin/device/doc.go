// Package device implements the device authorization grant (RFC 8628) for devices without a
// browser. A device shows a short code. A user who has signed in elsewhere enters it and
// decides. The device receives its credential with the next poll; it is created at that moment
// and not stored. Requests are stored under the hashes of their codes.
package device
