package meter

import (
	"fmt"
	"os"

	"gateway/shared/host"
)

// Exposed makes totals and the server that shows them where EnvMetricsAddr says; nil
// and nil where it says nothing.
func Exposed() (*Totals, *host.Server, error) {
	addr := os.Getenv(EnvMetricsAddr)
	if addr == "" {
		return nil, nil, nil
	}
	t := NewTotals()
	s, err := host.Listen(addr, t, host.DefaultOptions())
	if err != nil {
		return nil, nil, fmt.Errorf("%s=%s: %w", EnvMetricsAddr, addr, err)
	}
	return t, s, nil
}
