package agent

import "toolctl.dev/toolctl/pkg/prompt"

// refuseInput checks the last message of the user with the validators of the prompt. If they
// refuse it, the model does not see the message, and the validator's text is the reply.
func (l *loop) refuseInput(hop *Hop) (reply Reply, refused bool) {
	if n := len(l.res.Messages); n == 0 || l.res.Messages[n-1].Role != RoleUser {
		return Reply{}, false
	}
	v := l.prompt.ValidateInput(l.res.Messages[len(l.res.Messages)-1].Text)
	if v == nil {
		return Reply{}, false
	}
	reply = l.verdict(hop, v)
	l.show(reply.Message.Text)
	l.tell(Event{Kind: EventReply, Hop: hop})
	return reply, true
}

// validateReply checks the text of the model with the validators of the prompt. If they refuse or cut a reply, its
// calls are not made.
func (l *loop) validateReply(hop *Hop, reply *Reply) {
	if v := l.prompt.ValidateReply(reply.Message.Text); v != nil {
		*reply = l.verdict(hop, v)
	}
	if l.prompt.HasValidators() {
		l.show(reply.Message.Text)
	}
}

func (l *loop) verdict(hop *Hop, v *prompt.Verdict) Reply {
	hop.Validator = v
	if v.Direction == prompt.DirectionInput {
		l.warn("validator %q: the user's message was refused: %s", v.Validator, v.Reason)
	} else {
		l.warn("validator %q: the reply was replaced or cut: %s", v.Validator, v.Reason)
	}
	return Reply{Message: Message{Role: RoleAssistant, Text: v.Text}, Stop: StopEnd}
}

// show streams a reply that was held back until its validation.
func (l *loop) show(text string) {
	if l.opts.Stream && text != "" {
		l.tell(Event{Kind: EventDelta, Delta: Delta{Text: text}})
	}
}
