package robot

import "context"

type askerKey struct{}

// By is ctx with who asks, in words that follow "by": a motion that is stopped says by whom.
func By(ctx context.Context, who string) context.Context {
	return context.WithValue(ctx, askerKey{}, who)
}

// Asker is who asks by ctx; "a stop command" when that was not said.
func Asker(ctx context.Context) string {
	if who, ok := ctx.Value(askerKey{}).(string); ok && who != "" {
		return who
	}
	return "a stop command"
}
