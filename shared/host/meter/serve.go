package meter

import (
	"fmt"
	"os"

	"gateway/shared/host"
)

// ListenTotals returns totals and the server that serves them at the address of
// EnvMetricsAddr; without an address the server is nil.
func ListenTotals() (*Totals, *host.Server, error) {
	addr := os.Getenv(EnvMetricsAddr)
	t := NewTotals()
	if addr == "" {
		return t, nil, nil
	}
	s, err := host.Listen(addr, t, host.DefaultOptions())
	if err != nil {
		return nil, nil, fmt.Errorf("%s=%s: %w", EnvMetricsAddr, addr, err)
	}
	return t, s, nil
}
