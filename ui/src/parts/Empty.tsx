import type { ReactNode } from "react";
import { Icon, type IconName } from "./Icon";

/** Where there is nothing (yet): what would be here, and how to get it. */
export function Empty({
  icon,
  title,
  children,
  heading: Heading = "h2",
}: {
  icon: IconName;
  title: string;
  children?: ReactNode;
  heading?: "h1" | "h2" | "h3";
}) {
  return (
    <div className="empty">
      <span className="empty-icon">
        <Icon name={icon} size={28} />
      </span>
      <Heading>{title}</Heading>
      {children}
    </div>
  );
}
