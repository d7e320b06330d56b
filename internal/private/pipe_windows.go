package private

import (
	"fmt"

	"golang.org/x/sys/windows"
)

// checkPipe checks the owner of a named pipe, which our handle has the right to read. Only
// a user who may restore files can make somebody else the owner of what they create.
func checkPipe(handle uintptr) error {
	security, err := windows.GetSecurityInfo(windows.Handle(handle), windows.SE_KERNEL_OBJECT, windows.OWNER_SECURITY_INFORMATION)
	if err != nil {
		return fmt.Errorf("the owner of the pipe: %w", err)
	}
	owner, _, err := security.Owner()
	if err != nil {
		return fmt.Errorf("the owner of the pipe: %w", err)
	}
	user, err := windows.GetCurrentProcessToken().GetTokenUser()
	if err != nil {
		return fmt.Errorf("the owner of the pipe: %w", err)
	}
	if owner.Equals(user.User.Sid) || owner.IsWellKnown(windows.WinBuiltinAdministratorsSid) || owner.IsWellKnown(windows.WinLocalSystemSid) {
		return nil
	}
	return &PeerError{UID: -1, SID: owner.String()}
}
