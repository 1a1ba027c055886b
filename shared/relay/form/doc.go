// Package form reads multipart/form-data bodies as far as they are held in memory,
// sets one field of them, and streams the rest through without ever giving the
// last bytes of a body that is cut short. What the fields mean is others' to say.
package form
