package onaws

import (
	"fmt"
	"slices"
)

// maxSecrets is how many origin secrets may be valid at a time.
const maxSecrets = 2

// NoOriginSecrets is the value of EnvOriginSecrets for processes that callers reach
// without the edge.
const NoOriginSecrets = "off"

// OriginSecrets returns the secrets by which the edge authenticated at deployment; none if
// there is no edge. A process without this setting does not start.
func OriginSecrets() ([]string, error) {
	secrets := list(EnvOriginSecrets)
	switch {
	case len(secrets) == 0:
		return nil, fmt.Errorf("onaws: %s must be set: the secrets of the edge, or %s where there is no edge", EnvOriginSecrets, NoOriginSecrets)
	case slices.Equal(secrets, []string{NoOriginSecrets}):
		return nil, nil
	case len(secrets) > maxSecrets:
		return nil, fmt.Errorf("onaws: %s has %d values, at most %d may live at a time", EnvOriginSecrets, len(secrets), maxSecrets)
	}
	return secrets, nil
}
