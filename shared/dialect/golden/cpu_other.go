//go:build !unix

package golden

// cpu is not known on systems that do not tell it.
func cpu() int64 { return 0 }
