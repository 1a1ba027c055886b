package relay

import (
	"gateway/shared/fault"
	"gateway/shared/provider"
)

// needsRecording refuses a form without a file where the target takes no address of a
// recording in its place.
func (tg *target) needsRecording(op provider.Operation) error {
	if op != provider.AudioTranscription && op != provider.AudioTranslation || tg.form == nil || !tg.form.Whole() || tg.form.HasFile("file") || tg.to.target.TakesRecordingURL() {
		return nil
	}
	return fault.Newf(fault.InvalidRequest, "file", "file is required: a file; %s takes no url in its place", tg.to.target.Provider.ID)
}
