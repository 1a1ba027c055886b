package guard

import "gateway/shared/resource"

// KindGuardrail is the kind of saved guardrails, of the organisation or of a
// workspace.
const KindGuardrail resource.Kind = "GUARDRAIL"
