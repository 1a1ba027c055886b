package target

import (
	"strings"
	"testing"

	"gateway/shared/fault"
	"gateway/shared/relay/routes"
)

// TestPathsThatNobodyIsSentSayWhy covers requests without a provider.
func TestPathsThatNobodyIsSentSayWhy(t *testing.T) {
	t.Parallel()
	for path, why := range map[string]string{
		"/realtime/translations": "has no price", "/realtime/translations/client_secrets": "has no price", "/realtime/calls/rtc_1": "sends audio",
		"/chat/other": "", "/organization/users": "", // that one is OpenAI's alone
	} {
		err := withheldAnyway(routes.Raw, func() string { return path })
		if (err != nil) != (why != "") || err != nil && (!strings.Contains(err.Error(), why) || !fault.Is(err, fault.NotAllowed)) {
			t.Errorf("%s: %v, want %q", path, err, why)
		}
	}
	if err := withheldAnyway(routes.Unified, func() string { return "/realtime/translations" }); err != nil {
		t.Errorf("another route: %v", err)
	}
}
