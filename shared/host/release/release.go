// Package release holds the version of the program.
package release

// version is set when a release is linked: -ldflags "-X gateway/shared/host/release.version=v1.2.3".
var version string

// Version returns the version of this program, "dev" when it is no release.
func Version() string {
	if version == "" {
		return "dev"
	}
	return version
}
