//go:build !unix

package golden

// cpu is unknown on systems that do not report it.
func cpu() int64 { return 0 }
