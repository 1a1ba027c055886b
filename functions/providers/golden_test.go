package providers

import (
	"flag"
	"testing"

	"gateway/shared/testkit/admintest"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func TestResponsesRetainTheirFormat(t *testing.T) {
	h := newInstallation(t)
	integrate(t, h, admintest.Org, h.One, "own")
	h.SecretReference("vault")
	h.Golden(*update, "answers.txt",
		admintest.As(key, "POST", "/providers", `{"name":"Mine","slug":"mine","integration_id":"own","note":"n","tags":{"team":"a"},"usage_limits":{"credit_limit":5,"alert_threshold":4,"periodic_reset_days":7},"rate_limits":{"type":"requests","unit":"rpm","value":9},"expires_at":"2999-01-01T00:00:00Z"}`),
		admintest.As(key, "GET", "/providers/mine?include_configurations=true", ""),
		admintest.As(key, "PUT", "/providers/mine", `{"name":"New","reset_usage":true}`),
		admintest.As(key, "GET", "/providers", ""),
		admintest.As(key, "POST", "/virtual-keys", `{"name":"Azure","slug":"azure","provider":"azure-openai","key":"CANARY-0123456789","resourceName":"res","deploymentConfig":[{"apiVersion":"2024-10-21","deploymentName":"gpt","alias":"a","is_default":true}],
			"secret_mappings":[{"target_field":"model_config.azureAdToken","secret_reference_id":"vault"}]}`),
		admintest.As(key, "GET", "/virtual-keys/azure", ""),
		admintest.As(key, "PUT", "/virtual-keys/azure", `{"note":"n"}`),
		admintest.As(key, "DELETE", "/virtual-keys/azure", ""),
		admintest.As(key, "GET", "/virtual-keys", ""),
	)
}
